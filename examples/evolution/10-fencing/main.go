// 10-fencing numbers the holders, and lets the resource refuse those who are late. The lock is Latchkey's, of kind
// [lock.Fenced]; the other half of it is in store.go.
package main

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/examples/evolution/play"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson"
)

var step = play.Step{
	Name:    "10-fencing",
	New:     newLock,
	Store:   func(rdb *redis.Client, l play.Locker) play.Store { return &FencedStore{rdb, l.(*Lock).Token} },
	Durable: true, // a server that forgets its counter gives out the same numbers again
	Closes:  []play.Play{play.StoppedWriter, play.WriterAfterReader},
}

func main() { play.Main(step) }

// Lock is a lock of Latchkey: with an owner, renewed by a watchdog, and with a context that ends when the lock is lost.
type Lock struct {
	locker lock.Locker
	hold   lock.Hold
}

func newLock(s play.Setting) (play.Locker, error) {
	client, err := redisson.New(s.Redis[0], redisson.WatchdogTimeout(s.Lease))
	return &Lock{locker: client}, err
}

// TryLock takes the lock and a number that is higher than those of all holders before.
func (l *Lock) TryLock(ctx context.Context) (bool, error) {
	hold, err := l.locker.Acquire(ctx, lock.Request{Key: play.Key, Kind: lock.Fenced})
	if errors.Is(err, lock.ErrBusy) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	l.hold = hold
	return true, nil
}

// Token is the number of the hold.
func (l *Lock) Token() int64 { return l.hold.(interface{ Token() int64 }).Token() }

// Held ends when the lock is lost, by the clock of this machine at the latest.
func (l *Lock) Held() context.Context { return l.hold.Context() }

// Unlock gives the lock back.
func (l *Lock) Unlock(ctx context.Context) error { return l.hold.Release(ctx) }
