// 06-get-then-del writes into the key whose it is, and looks before it deletes.
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
	Name:   "06-get-then-del",
	New:    func(s play.Setting) (play.Locker, error) { return &Lock{s.Redis[0], s.Lease, rand.Text()}, nil },
	Closes: []play.Play{play.LateUnlock},
	Holes:  []play.Play{play.StoppedUnlock},
}

func main() { play.Main(step) }

// Lock is a key with the name of its owner, which nobody else has.
type Lock struct {
	rdb   *redis.Client
	lease time.Duration
	owner string
}

// TryLock makes the key with its time to live, unless it is there.
func (l *Lock) TryLock(ctx context.Context) (bool, error) {
	return l.rdb.SetNX(ctx, play.Key, l.owner, l.lease).Result()
}

// Unlock deletes the key if it is the owner's. It may be so when Redis reads it, and not any more when Redis deletes
// it.
func (l *Lock) Unlock(ctx context.Context) error {
	owner, err := l.rdb.Get(ctx, play.Key).Result()
	if errors.Is(err, redis.Nil) || err == nil && owner != l.owner {
		return errors.New("the lock was lost")
	} else if err != nil {
		return err
	}
	return l.rdb.Del(ctx, play.Key).Err()
}
