package idempotency_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/middleware/idempotency"
	"github.com/redis/go-redis/v9"
)

// model is a Store by the letter of its comment.
type model map[string]struct {
	idempotency.Record
	until time.Time
}

func (m model) begin(now time.Time, key string, r idempotency.Record, keep time.Duration) idempotency.Record {
	if e, ok := m[key]; ok && now.Before(e.until) {
		return e.Record
	}
	delete(m, key)
	if r.Owner != "" {
		e := m[key]
		e.Record, e.until = r, now.Add(keep)
		m[key] = e
	}
	return r
}

func (m model) finish(now time.Time, key string, r idempotency.Record, keep time.Duration) (ok bool) {
	e, there := m[key]
	own := there && now.Before(e.until) && e.Owner == r.Owner
	switch {
	case r.Status == 0:
		if own && e.Status == 0 {
			delete(m, key)
		}
		return true
	case own:
		e.Record, e.until = r, now.Add(keep)
		m[key] = e
	}
	return own
}

// random is one step of anybody.
func random(rng *rand.Rand) (key string, r idempotency.Record, finish bool, keep time.Duration) {
	key, keep = fmt.Sprint("k", rng.IntN(2)), time.Duration(1+rng.IntN(20))*time.Second
	owner := fmt.Sprint("o", rng.IntN(3))
	switch rng.IntN(6) {
	case 0:
		return key, idempotency.Record{}, false, keep
	case 1, 2:
		return key, begun(owner), false, keep
	case 3:
		return key, begun(owner), true, keep
	}
	return key, done(owner), true, keep
}

// TestMemoryIsTheModel plays random steps with expiry, each beside the model.
func TestMemoryIsTheModel(t *testing.T) {
	for seed := range uint64(200) {
		synctest.Test(t, func(t *testing.T) {
			rng, s, m := rand.New(rand.NewPCG(seed, 1)), idempotency.NewMemory(0), model{}
			for i := range 100 {
				time.Sleep(time.Duration(rng.IntN(3000)) * time.Millisecond)
				key, r, finish, keep := random(rng)
				if finish {
					err := s.Finish(t.Context(), key, r, keep)
					if ok := m.finish(time.Now(), key, r, keep); ok != (err == nil) {
						t.Fatalf("seed %d, step %d: Finish(%s, %+v) = %v, want %v", seed, i, key, r, err, ok)
					}
					continue
				}
				got, err := s.Begin(t.Context(), key, r, keep)
				if want := m.begin(time.Now(), key, r, keep); err != nil || !same(got, want) {
					t.Fatalf("seed %d, step %d: Begin(%s, %+v) = %+v, %v, want %+v", seed, i, key, r, got, err, want)
				}
			}
		})
	}
}

// op is a step of a history: what was asked, and what came of it, between two times of one clock.
type op struct {
	key      string
	r, got   idempotency.Record
	finish   bool
	expire   bool // the record's time is over
	ok       bool
	from, to int64
}

// apply does what o asks to m, and reports whether that has come of it.
func (o op) apply(m model) bool {
	switch {
	case o.expire:
		delete(m, o.key)
		return true
	case o.finish:
		return m.finish(time.Time{}, o.key, o.r, time.Hour) == o.ok
	}
	return same(m.begin(time.Time{}, o.key, o.r, time.Hour), o.got)
}

// explains reports whether the steps of a history can have been made one after the other, each within its times.
func explains(m model, history []op) bool {
	if len(history) == 0 {
		return true
	}
	first := history[0].to
	for _, o := range history {
		first = min(first, o.to)
	}
	for i, o := range history {
		if o.from > first { // another one had ended before it began
			continue
		}
		next := model{}
		maps.Copy(next, m)
		rest := append(append([]op{}, history[:i]...), history[i+1:]...)
		if o.apply(next) && explains(next, rest) {
			return true
		}
	}
	return false
}

// expire ends the time of a record in Redis.
func expire(ctx context.Context, rdb *redis.Client, key string) error {
	return rdb.PExpire(ctx, key, 0).Err()
}

// TestStoreIsAtomic plays random steps of three at once, and looks for an order that explains what each was told.
func TestStoreIsAtomic(t *testing.T) {
	rdb := redistest.Any(t).Client(t)
	redisStore, err := idempotency.NewRedis(rdb, "shop:")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name   string
		store  idempotency.Store
		rounds uint64
	}{{"memory", idempotency.NewMemory(0), 2000}, {"redis", redisStore, 300}} {
		t.Run(tt.name, func(t *testing.T) {
			beside := 0
			for seed := range tt.rounds {
				history := playAtOnce(t, tt.store, rdb, tt.name == "redis", seed)
				if !explains(model{}, history) {
					t.Fatalf("seed %d: nothing explains %+v", seed, history)
				}
				for _, o := range history {
					for _, p := range history {
						if o.from < p.from && p.from < o.to {
							beside++
						}
					}
				}
			}
			if beside < int(tt.rounds) {
				t.Errorf("in %d rounds, %d steps ran beside others: that proves nothing", tt.rounds, beside)
			}
		})
	}
}

func playAtOnce(t *testing.T, s idempotency.Store, rdb *redis.Client, expires bool, seed uint64) (history []op) {
	var clock atomic.Int64
	var mu sync.Mutex
	var all sync.WaitGroup
	start := make(chan bool)
	for i := range uint64(3) {
		all.Go(func() {
			rng := rand.New(rand.NewPCG(seed, i))
			<-start
			for range 3 {
				var o op
				o.key, o.r, o.finish, _ = random(rng)
				o.expire = expires && rng.IntN(8) == 0
				key := fmt.Sprintf("%d:%s", seed, o.key)
				o.from = clock.Add(1)
				runtime.Gosched() // or a step in memory is over before others are asked for
				var err error
				switch {
				case o.expire:
					err = expire(t.Context(), rdb, "shop:"+key)
				case o.finish:
					o.ok = s.Finish(t.Context(), key, o.r, time.Hour) == nil
				default:
					o.got, err = s.Begin(t.Context(), key, o.r, time.Hour)
				}
				o.to = clock.Add(1)
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				history = append(history, o)
				mu.Unlock()
			}
		})
	}
	close(start)
	all.Wait()
	return history
}

// The judge of histories finds what it is for.
func TestExplainsFindsTwoOwners(t *testing.T) {
	two := []op{
		{key: "k", r: begun("a"), got: begun("a"), from: 1, to: 4},
		{key: "k", r: begun("b"), got: begun("b"), from: 2, to: 3},
	}
	if explains(model{}, two) {
		t.Error("two have begun one record")
	}
	two[1].got = begun("a")
	if !explains(model{}, two) {
		t.Error("one has begun it, and the other one was told")
	}
	two[0].from, two[0].to = 5, 6
	if explains(model{}, two) {
		t.Error("it was told of what was yet to come")
	}
}
