// 04-getset writes into the key when the lock ends, so that one command makes both. Each client compares that with its clock.
package main

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/examples/evolution/play"
)

var step = play.Step{
	Name:   "04-getset",
	New:    func(s play.Setting) (play.Locker, error) { return &Lock{s.Redis[0], s.Lease, s.Now}, nil },
	Closes: []play.Play{play.KilledBetween},
	Holes:  []play.Play{play.FastClock},
}

func main() { play.Main(step) }

// Lock is a key with the time at which the lock ends, by the clock of the one who took it.
type Lock struct {
	rdb   *redis.Client
	lease time.Duration
	now   func() time.Time
}

// TryLock makes the key, or takes it over if its time is past. If several see that, the first to replace it has the
// lock.
func (l *Lock) TryLock(ctx context.Context) (bool, error) {
	now := l.now()
	end := now.Add(l.lease).UnixMilli()
	ok, err := l.rdb.SetNX(ctx, play.Key, end, 0).Result()
	if ok || err != nil {
		return ok, err
	}
	seen, err := l.rdb.Get(ctx, play.Key).Int64()
	if errors.Is(err, redis.Nil) || err == nil && seen > now.UnixMilli() {
		return false, nil // freed just now: the next try gets it; or held
	} else if err != nil {
		return false, err
	}
	replaced, err := l.rdb.Do(ctx, "getset", play.Key, end).Int64()
	return err == nil && replaced <= now.UnixMilli(), err
}

// Unlock deletes the key.
func (l *Lock) Unlock(ctx context.Context) error {
	return l.rdb.Del(ctx, play.Key).Err()
}
