// 09-redlock is a lock on the majority of three servers, so that one may forget it, and tells its holder when it is lost. It is
// Latchkey's own RedLock, which is Redisson's: the hole is not in some careless code.
package main

import (
	"context"

	"github.com/latchkey-go/latchkey/examples/evolution/play"
	"github.com/latchkey-go/latchkey/redisson"
)

var step = play.Step{
	Name:    "09-redlock",
	Servers: 3,
	New:     newLock,
	Closes:  []play.Play{play.StoppedHolder, play.ForgetfulServer},
	Holes:   []play.Play{play.StoppedWriter, play.WriterAfterReader},
}

func main() { play.Main(step) }

// Lock is held by who holds it on two of the servers. A watchdog renews it.
type Lock struct {
	red  *redisson.RedLock
	held context.Context
}

func newLock(s play.Setting) (play.Locker, error) {
	var locks []redisson.Member
	for _, rdb := range s.Redis {
		client, err := redisson.New(rdb, redisson.WatchdogTimeout(s.Lease))
		if err != nil {
			return nil, err
		}
		locks = append(locks, client.Lock(play.Key))
	}
	red, err := redisson.NewRedLock(locks...)
	return &Lock{red: red}, err
}

// TryLock takes the lock on a majority, or on none.
func (l *Lock) TryLock(ctx context.Context) (ok bool, err error) {
	held, ok, err := l.red.TryLock(ctx, 0, 0)
	if ok {
		l.held = held
	}
	return ok, err
}

// Held ends when the majority is lost, by the clock of this machine at the latest. A process that is stopped can't look
// at it.
func (l *Lock) Held() context.Context { return l.held }

// Unlock gives the lock back.
func (l *Lock) Unlock(context.Context) error { return l.red.Unlock(l.held) }
