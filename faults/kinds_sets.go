package main

import (
	"context"
	"errors"
	"time"

	"github.com/latchkey-go/latchkey/faults/check"
	"github.com/latchkey-go/latchkey/faults/lockset"
	"github.com/latchkey-go/latchkey/faults/server"
	"github.com/latchkey-go/latchkey/faults/worker"
	"github.com/redis/go-redis/v9"
)

// The lock-set workload: holders are stopped for longer than their lease between the read and the write of a set. Without a fence, that
// must lose what others have added meanwhile: if it did not, the one with a fence would prove nothing.
var setKinds = []kind{
	{name: "lock-set, fenced: writer stopped", mix: []string{"set"}, keys: 4, strike: stopWriters, lacks: refusals(noneRefused)},
	{name: "lock-set, unfenced: writer stopped", mix: []string{"unfenced set"}, keys: 4, strike: stopWriters, lacks: func(r *check.Result) string {
		if r.Missing > 0 {
			return ""
		}
		return "no update was lost without a fence"
	}},
}

// Leaders of guard.Lead write sets, with the tokens of their leads.
var leadKinds = []kind{
	{name: "lead: leader stopped", mix: []string{"lead"}, keys: 6, strike: stopWriters, lacks: refusals(noneRefused)},
	{name: "lead: leader killed", mix: []string{"lead"}, keys: 6, kills: true, strike: killHolder},
	{name: "lead: leader cut off", mix: []string{"lead"}, keys: 6, strike: cutOff},
}

// Clients of all workers send the same requests, whose work is done once. A client that repeats one whose process was
// killed learns of that.
var requestKinds = []kind{
	{name: "idempotency: server killed", mix: []string{"request"}, keys: 6, kills: true, strike: times(6, killHolder), lacks: refusals("nobody was told that an outcome is unknown")},
	{name: "idempotency: server cut off", mix: []string{"request"}, keys: 6, strike: cutOff},
}

// Levels, of which the workers take some in any order, and say differently how many permits there are; and a rate.
var limitKinds = []kind{
	{name: "limit: holder killed", mix: limited, keys: 3, kills: true, strike: killHolder},
	{name: "limit: holder stopped", mix: limited, keys: 3, strike: stopHolder},
	{name: "limit: holder cut off", mix: limited, keys: 3, strike: cutOff},
}

var limited = []string{"limit", "limit", "pace"}

// noneRefused is why a run proves nothing about stores that refuse writers which were stopped.
const noneRefused = "the store has refused no write of a writer that was stopped"

// refusals wants some writes that were refused.
func refusals(otherwise string) func(*check.Result) string {
	return func(r *check.Result) string {
		if r.Refused > 0 {
			return ""
		}
		return otherwise
	}
}

// stopWriters stops a worker while it is about to write, three times. On a busy machine the signal may come when it has written: that does not
// count, and there are six tries.
func stopWriters(ctx context.Context, s *stage) error {
	var struck []string
	for tries, hits := 0, 0; hits < 3 && tries < 6; tries++ {
		about := func(v *way) bool { return s.board[v.Place].Adding.Load() > 0 }
		v, hit := s.await(ctx, s.ways, about), make(chan bool, 1)
		time.AfterFunc(watchdog/2, func() { hit <- v != nil && about(v) }) // it stands still
		if err := s.freeze(ctx, v, watchdog+s.between(100, 500)); err != nil {
			return err
		}
		if <-hit {
			hits++
		}
		struck = append(struck, v.Name)
		sleep(ctx, s.between(100, 300))
	}
	s.procs = struck
	return nil
}

// storeURL is where the sets are: no fault of their world strikes the server, and workers reach it directly.
func (w *world) storeURL() string {
	return "redis://" + server.User + ":" + server.Password + "@" + w.servers[0].Addr + "/1"
}

// finals notes what the sets of a round hold at its end.
func (s *stage) finals(ctx context.Context) (err error) {
	if !s.plan.sets {
		return nil
	}
	o, err := redis.ParseURL(s.storeURL())
	if err != nil {
		return err
	}
	store := redis.NewClient(o)
	defer store.Close()
	for _, sort := range s.order.Mix {
		for i := range s.order.Keys {
			key := s.keyOf(sort, i)
			err = errors.Join(err, lockset.New(store, worker.Set(key)).Final(ctx, s.log, key))
		}
	}
	return err
}
