// 03-setnx-expire gives the key a time to live, so that the lock of a dead process ends. It does so in a second command.
package main

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/examples/evolution/play"
)

var step = play.Step{
	Name:   "03-setnx-expire",
	New:    func(s play.Setting) (play.Locker, error) { return &Lock{s.Redis[0], s.Lease}, nil },
	Closes: []play.Play{play.KilledHolder},
	Holes:  []play.Play{play.KilledBetween},
}

func main() { play.Main(step) }

// Lock is a key with a time to live: the lease.
type Lock struct {
	rdb   *redis.Client
	lease time.Duration
}

// TryLock makes the key, unless it is there, and then lets it expire. A process that dies in between leaves a key that
// never does.
func (l *Lock) TryLock(ctx context.Context) (bool, error) {
	ok, err := l.rdb.SetNX(ctx, play.Key, "locked", 0).Result()
	if !ok || err != nil {
		return false, err
	}
	return l.rdb.PExpire(ctx, play.Key, l.lease).Result()
}

// Unlock deletes the key.
func (l *Lock) Unlock(ctx context.Context) error {
	return l.rdb.Del(ctx, play.Key).Err()
}
