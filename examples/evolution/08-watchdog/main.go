// 08-watchdog renews the lease for as long as the process lives, however long the work takes.
package main

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/examples/evolution/play"
)

var step = play.Step{
	Name:   "08-watchdog",
	New:    func(s play.Setting) (play.Locker, error) { return &Lock{rdb: s.Redis[0], lease: s.Lease}, nil },
	Closes: []play.Play{play.SlowWork},
	Holes:  []play.Play{play.StoppedHolder, play.ForgetfulServer},
}

func main() { play.Main(step) }

// Lock is a key with the name of its owner, renewed until Unlock.
type Lock struct {
	rdb   *redis.Client
	lease time.Duration
	owner string
	stop  context.CancelFunc // the watchdog
}

var (
	release = redis.NewScript(`
		if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end
		return 0`)
	renew = redis.NewScript(`
		if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('pexpire', KEYS[1], ARGV[2]) end
		return 0`)
)

// TryLock makes the key with its time to live, unless it is there, and has the watchdog renew it.
func (l *Lock) TryLock(ctx context.Context) (bool, error) {
	l.owner = rand.Text()
	ok, err := l.rdb.SetNX(ctx, play.Key, l.owner, l.lease).Result()
	if ok && err == nil {
		ctx, l.stop = context.WithCancel(ctx)
		go l.watchdog(ctx, l.owner)
	}
	return ok, err
}

// watchdog renews the lease at each third of it. When the key has gone, there is nobody to tell.
func (l *Lock) watchdog(ctx context.Context, owner string) {
	for ticks := time.NewTicker(l.lease / 3); ; {
		select {
		case <-ticks.C:
			_ = renew.Run(ctx, l.rdb, []string{play.Key}, owner, l.lease.Milliseconds()).Err()
		case <-ctx.Done():
			ticks.Stop()
			return
		}
	}
}

// Unlock deletes the key if it is the owner's.
func (l *Lock) Unlock(ctx context.Context) error {
	l.stop()
	deleted, err := release.Run(ctx, l.rdb, []string{play.Key}, l.owner).Bool()
	if err == nil && !deleted {
		err = errors.New("the lock was lost")
	}
	return err
}
