// 02-setnx puts the lock where all machines can see it: a key in Redis that only one of them can make.
package main

import (
	"context"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/examples/evolution/play"
)

var step = play.Step{
	Name:   "02-setnx",
	New:    func(s play.Setting) (play.Locker, error) { return &Lock{s.Redis[0]}, nil },
	Closes: []play.Play{play.TwoMachines},
	Holes:  []play.Play{play.KilledHolder},
}

func main() { play.Main(step) }

// Lock is a key that is there while somebody holds the lock.
type Lock struct{ rdb *redis.Client }

// TryLock makes the key, unless it is there. A process that dies before Unlock leaves it to nobody.
func (l *Lock) TryLock(ctx context.Context) (bool, error) {
	return l.rdb.SetNX(ctx, play.Key, "locked", 0).Result()
}

// Unlock deletes the key.
func (l *Lock) Unlock(ctx context.Context) error {
	return l.rdb.Del(ctx, play.Key).Err()
}
