// 07-lua-release looks and deletes in one script, between whose commands nothing else can happen.
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
	Name:   "07-lua-release",
	New:    func(s play.Setting) (play.Locker, error) { return &Lock{s.Redis[0], s.Lease, rand.Text()}, nil },
	Closes: []play.Play{play.StoppedUnlock},
	Holes:  []play.Play{play.SlowWork},
}

func main() { play.Main(step) }

// Lock is a key with the name of its owner. Its lease is a guess at how long the work will take.
type Lock struct {
	rdb   *redis.Client
	lease time.Duration
	owner string
}

var release = redis.NewScript(`
	if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end
	return 0`)

// TryLock makes the key with its time to live, unless it is there.
func (l *Lock) TryLock(ctx context.Context) (bool, error) {
	return l.rdb.SetNX(ctx, play.Key, l.owner, l.lease).Result()
}

// Unlock deletes the key if it is the owner's.
func (l *Lock) Unlock(ctx context.Context) error {
	deleted, err := release.Run(ctx, l.rdb, []string{play.Key}, l.owner).Bool()
	if err == nil && !deleted {
		err = errors.New("the lock was lost")
	}
	return err
}
