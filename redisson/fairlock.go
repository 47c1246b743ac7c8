package redisson

import (
	"time"

	"github.com/latchkey-go/latchkey/lock"
)

// FairLock returns the fair lock of that name, Redisson's getFairLock: a Lock that serves its waiters in the order in which
// they came, whatever process they are in. Each waiter has a deadline in the queue, which it moves as long as it lives: a process that died
// keeps the others waiting once, for its wait and a second, or for FairLockWaitTimeout if that is less. TryLock without a wait does not
// queue, and takes the lock only if nobody else is in line.
func (c *Client) FairLock(name string) *Lock { return c.newLock(name, lock.Fair) }

// fair keeps the waiters of a lock in a list, with deadlines in a sorted set, by the server's clock. Each has a channel of
// its own, on which the release before it announces its turn.
type fair struct{ plain }

func fairKeys(name string) []string { return []string{name, fairQueue(name), fairDeadlines(name)} }

func (fair) enter(ho *holder, lease time.Duration) call {
	return call{Script: fairAcquire, Keys: fairKeys(ho.name()), Args: []any{ho.id, millis(lease), millis(ho.patience), ho.queues}}
}

func (fair) exit(ho *holder, successor string, kept time.Duration) call {
	return call{Script: fairRelease, Keys: fairKeys(ho.name()), Args: []any{ho.id, millis(ho.patience), lockChannel(ho.name()), successor, millis(kept)}}
}
