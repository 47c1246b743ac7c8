// 05-set-nx-px makes the key and its time to live in one command, so that the server's clock decides and no client's.
package main

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/examples/evolution/play"
)

var step = play.Step{
	Name:   "05-set-nx-px",
	New:    func(s play.Setting) (play.Locker, error) { return &Lock{s.Redis[0], s.Lease}, nil },
	Closes: []play.Play{play.FastClock},
	Holes:  []play.Play{play.LateUnlock},
}

func main() { play.Main(step) }

// Lock is a key that Redis deletes when the lease is over.
type Lock struct {
	rdb   *redis.Client
	lease time.Duration
}

// TryLock makes the key with its time to live, unless it is there.
func (l *Lock) TryLock(ctx context.Context) (bool, error) {
	return l.rdb.SetNX(ctx, play.Key, "locked", l.lease).Result() // SET lock locked PX … NX
}

// Unlock deletes the key, whoever has made it.
func (l *Lock) Unlock(ctx context.Context) error {
	return l.rdb.Del(ctx, play.Key).Err()
}
