package redisson

import (
	"time"

	"github.com/latchkey-go/latchkey/lock"
)

// permit serves lock.Permit on the data of Redisson's RPermitExpirableSemaphore, so that its holders are freed by their
// lease after a crash. The holder's id is the permit's, 16 random bytes. The first Acquire makes a semaphore that is not
// there, with the request's Limit, and marks it as its own; such a one is gone when nobody holds a permit, so that keys made
// from requests leave nothing. One that was made with TrySetPermits, here or in Java, stays and keeps its own number.
type permit struct{}

func permitKeys(name string) []string { return []string{name, permitsKey(name), permitsMark(name)} }

func (permit) enter(ho *holder, lease time.Duration) call {
	return call{permitAcquire, permitKeys(ho.name), []any{ho.id, semaphoreChannel(ho.name), millis(lease), ho.limit}}
}

func (permit) update(ho *holder, _ counts, lease time.Duration, _ change) call {
	return call{permitUpdate, permitKeys(ho.name), []any{ho.id, semaphoreChannel(ho.name), millis(lease)}}
}

func (permit) exit(ho *holder, heir string, kept time.Duration) call {
	return call{permitRelease, permitKeys(ho.name), []any{ho.id, semaphoreChannel(ho.name), heir, millis(kept)}}
}

// force is never asked for: there is no Lock of this kind.
func (permit) force(name string, _ lock.Kind) call { return spin{}.force(name, lock.Permit) }

func (permit) channel(ho *holder) string { return semaphoreChannel(ho.name) }
