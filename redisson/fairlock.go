package redisson

import (
	"time"

	"github.com/latchkey-go/latchkey/lock"
)

// FairLock returns the fair lock of that name, Redisson's getFairLock: a Lock that serves its waiters in the order in which
// they came, whatever process they are in. Each waiter has a deadline in the queue, of its own wait or FairLockWaitTimeout:
// a waiter that died keeps the ones behind it waiting for so long. TryLock without a wait does not queue, and takes the
// lock only if nobody else is in line.
func (c *Client) FairLock(name string) *Lock { return c.newLock(name, lock.Fair) }

// fair keeps the waiters of a lock in a list, with deadlines in a sorted set, by the server's clock. Each has a channel of
// its own, on which the holder before it tells it that its turn has come.
type fair struct{}

func fairKeys(name string) []string { return []string{name, fairQueue(name), fairDeadlines(name)} }

func (fair) enter(cl *claim, _ *hold, lease time.Duration) call {
	queue := "0"
	if cl.queued {
		queue = "1"
	}
	return call{fairAcquireScript(), fairKeys(cl.name), []any{cl.holder, millis(lease), len(cl.holds) + 1, millis(cl.patience), queue}}
}

func (fair) exit(cl *claim, lease time.Duration) call {
	return call{fairReleaseScript(), fairKeys(cl.name),
		[]any{cl.holder, len(cl.holds), millis(lease), millis(cl.patience), lockChannel(cl.name)}}
}

func (fair) renew(cl *claim, lease time.Duration) call { return plain{}.renew(cl, lease) }

func (fair) force(name string, _ lock.Kind) call {
	return call{fairForceScript(), fairKeys(name), []any{lockChannel(name)}}
}

func (fair) channel(cl *claim) string { return lockChannel(cl.name) + ":" + cl.holder }
