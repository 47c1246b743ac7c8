package redisson

import (
	"time"

	"github.com/latchkey-go/latchkey/lock"
)

// permit serves lock.Permit on the data of Redisson's RPermitExpirableSemaphore, so that its holders are freed by their
// lease after a crash. The claim's holder id is the permit's id, 16 random bytes. The first Acquire makes a semaphore that
// is not there, with the request's Limit; such a one is gone when nobody holds a permit, so that keys made from requests
// leave nothing. One that was made with TrySetPermits, here or in Java, stays and keeps its own number.
type permit struct{}

func permitKeys(name string) []string {
	return []string{name, permitsKey(name)}
}

func (permit) enter(cl *claim, h *hold, lease time.Duration) call {
	first := "0"
	if len(cl.holds) == 0 {
		first = "1"
	}
	return call{permitAcquireScript(), permitKeys(cl.name), []any{cl.holder, semaphoreChannel(cl.name), millis(lease), h.limit, first}}
}

func (p permit) exit(cl *claim, lease time.Duration) call {
	if len(cl.holds) > 0 {
		return p.renew(cl, lease)
	}
	return call{permitReleaseScript(), permitKeys(cl.name), []any{cl.holder, semaphoreChannel(cl.name)}}
}

func (permit) renew(cl *claim, lease time.Duration) call {
	return call{permitRenewScript(), permitKeys(cl.name), []any{cl.holder, semaphoreChannel(cl.name), millis(lease)}}
}

// force is never asked for: there is no Lock of this kind.
func (p permit) force(name string, _ lock.Kind) call { return spin{}.force(name, lock.Permit) }

func (permit) channel(cl *claim) string { return semaphoreChannel(cl.name) }
