package idempotency_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"reflect"
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

func begun(owner string) idempotency.Record {
	return idempotency.Record{Print: "print of " + owner, Owner: owner}
}

func done(owner string) idempotency.Record {
	r := begun(owner)
	r.Status, r.Header, r.Body = 201, http.Header{"Link": {"a", "b"}, "X-Empty": nil}, []byte("\x00\xffpaid to "+owner)
	return r
}

// same compares what a store has told.
func same(a, b idempotency.Record) bool {
	return a.Print == b.Print && a.Owner == b.Owner && a.Status == b.Status && a.TooLarge == b.TooLarge && bytes.Equal(a.Body, b.Body) &&
		reflect.DeepEqual(a.Header, b.Header)
}

// TestStore is what every Store has to do.
func TestStore(t *testing.T) {
	each(t, func(t *testing.T, s *spy) {
		begin := func(r, want idempotency.Record) {
			t.Helper()
			if got, err := s.Begin(t.Context(), "k", r, time.Hour); err != nil || !same(got, want) {
				t.Errorf("Begin(%+v) = %+v, %v, want %+v", r, got, err, want)
			}
		}
		finish := func(r idempotency.Record, ok bool) {
			t.Helper()
			if err := s.Finish(t.Context(), "k", r, time.Hour); (err == nil) != ok {
				t.Errorf("Finish(%+v) = %v", r, err)
			}
		}
		look, none := idempotency.Record{}, idempotency.Record{}

		begin(look, none)
		finish(done("a"), false) // makes none
		finish(begun("a"), true) // nothing to remove
		begin(look, none)

		begin(begun("a"), begun("a"))
		begin(begun("a"), begun("a")) // its answer was lost
		begin(begun("b"), begun("a"))
		begin(look, begun("a"))
		finish(done("b"), false)
		finish(begun("b"), true)
		begin(look, begun("a"))

		finish(begun("a"), true) // forgotten
		finish(begun("a"), true)
		begin(look, none)
		begin(begun("b"), begun("b"))
		finish(done("b"), true)
		finish(done("b"), true)  // its answer was lost
		finish(begun("b"), true) // which forgets no answer
		begin(look, done("b"))
		begin(begun("a"), done("b"))
		finish(done("a"), false)
		begin(look, done("b"))
	})
}

// An answer without a body, and one that was too large, come back as they are.
func TestStoreKeepsAnswers(t *testing.T) {
	each(t, func(t *testing.T, s *spy) {
		for i, r := range []idempotency.Record{
			{Status: 204, Header: http.Header{}}, {Status: 200, TooLarge: true, Header: http.Header{"Etag": {`"1"`}}}, {Status: 200, Body: make([]byte, mib)},
		} {
			key := fmt.Sprint(i)
			r.Print, r.Owner = "p", "o"
			if _, err := s.Begin(t.Context(), key, idempotency.Record{Print: "p", Owner: "o"}, time.Hour); err != nil {
				t.Fatal(err)
			}
			if err := s.Finish(t.Context(), key, r, time.Hour); err != nil {
				t.Fatal(err)
			}
			if got, err := s.Begin(t.Context(), key, idempotency.Record{}, 0); err != nil || !same(got, r) {
				t.Errorf("there is %+v, %v, want %+v", got, err, r)
			}
		}
	})
}

// A record of Redis lives as long as it should, from the begin and from the answer on.
func TestRedisTimesToLive(t *testing.T) {
	rdb := redistest.Any(t).Client(t)
	s, err := idempotency.NewRedis(rdb, "shop:")
	if err != nil {
		t.Fatal(err)
	}
	left := func(want time.Duration) {
		t.Helper()
		if got, err := rdb.PTTL(t.Context(), "shop:k").Result(); err != nil || got > want || got < want-30*time.Second {
			t.Errorf("time to live %v, %v, want %v", got, err, want)
		}
	}
	if _, err := s.Begin(t.Context(), "k", begun("a"), time.Minute); err != nil {
		t.Fatal(err)
	}
	left(time.Minute)
	if _, err := s.Begin(t.Context(), "k", begun("b"), time.Hour); err != nil {
		t.Fatal(err)
	}
	left(time.Minute)
	if err := s.Finish(t.Context(), "k", done("b"), time.Hour); err == nil {
		t.Error("another owner's record is written")
	}
	left(time.Minute)
	if err := s.Finish(t.Context(), "k", done("a"), time.Hour); err != nil {
		t.Fatal(err)
	}
	left(time.Hour)
}

// A user of Redis needs what NewRedis says, and no word of it can be left out.
func TestRedisUser(t *testing.T) {
	server := redistest.Start(t)
	admin := server.Client(t)
	words := []any{"~shop:*", "+evalsha", "+eval", "+hmget", "+hset", "+del", "+pexpire"}
	use := func(words []any) error {
		if err := admin.ScriptFlush(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		if err := admin.Do(t.Context(), append([]any{"acl", "setuser", "idem", "reset", "on", ">secret"}, words...)...).Err(); err != nil {
			t.Fatal(err)
		}
		s, err := idempotency.NewRedis(server.Client(t, func(o *redis.Options) { o.Username, o.Password = "idem", "secret" }), "shop:")
		if err != nil {
			t.Fatal(err)
		}
		for _, last := range []idempotency.Record{begun("a"), done("a")} {
			if _, err = s.Begin(t.Context(), "k", begun("a"), time.Hour); err != nil {
				return err
			}
			if err = s.Finish(t.Context(), "k", last, time.Hour); err != nil {
				return err
			}
		}
		return admin.Del(t.Context(), "shop:k").Err()
	}
	if err := use(words); err != nil {
		t.Error(err)
	}
	for i, word := range words {
		if err := use(append(append([]any{}, words[:i]...), words[i+1:]...)); err == nil {
			t.Errorf("it works without %v, too", word)
		}
	}
}

// In a Cluster each record has a slot of its own.
func TestRedisCluster(t *testing.T) {
	s, err := idempotency.NewRedis(redistest.StartCluster(t, 0).Client(t), "shop:")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 30 {
		key := fmt.Sprint("k", i)
		if _, err := s.Begin(t.Context(), key, begun("a"), time.Hour); err != nil {
			t.Fatal(err)
		}
		if err := s.Finish(t.Context(), key, done("a"), time.Hour); err != nil {
			t.Fatal(err)
		}
		if got, err := s.Begin(t.Context(), key, begun("b"), time.Hour); err != nil || !same(got, done("a")) {
			t.Errorf("there is %+v, %v", got, err)
		}
	}
}

func TestNewRedisReportsMistakes(t *testing.T) {
	rdb := redis.NewClient(&redis.Options{})
	defer rdb.Close()
	ring := redis.NewRing(&redis.RingOptions{})
	defer ring.Close()
	for _, tt := range []struct {
		rdb    redis.UniversalClient
		prefix string
	}{{nil, "shop:"}, {rdb, ""}, {ring, "shop:"}} {
		if s, err := idempotency.NewRedis(tt.rdb, tt.prefix); err == nil {
			t.Errorf("NewRedis(%T, %q) = %v", tt.rdb, tt.prefix, s)
		}
	}
}

// An answer of Redis that is lost on the way is asked for again, by the same owner.
func TestLostAnswersOfRedis(t *testing.T) {
	server := redistest.Any(t)
	p := server.Front(t)
	rdb := redis.NewClient(&redis.Options{Addr: p.Addr, ContextTimeoutEnabled: true})
	defer rdb.Close()
	s, err := idempotency.NewRedis(rdb, "shop:")
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time the server knows the scripts
		p.CutReply("evalsha", 1)
		if got, err := s.Begin(t.Context(), "k", begun("a"), time.Hour); err != nil || !same(got, begun("a")) {
			t.Errorf("Begin = %+v, %v", got, err)
		}
		p.CutReply("evalsha", 1)
		if err := s.Finish(t.Context(), "k", done("a"), time.Hour); err != nil {
			t.Errorf("Finish = %v", err)
		}
		if n := p.Cuts(); n > 0 {
			t.Error("no answer was lost")
		}
		if err := rdb.Del(t.Context(), "shop:k").Err(); err != nil {
			t.Fatal(err)
		}
	}
}

// A full Memory lets nobody in, until somebody's time is over.
func TestMemoryIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := idempotency.NewMemory(2)
		for _, tt := range []struct {
			key string
			ok  bool
		}{{"a", true}, {"b", true}, {"c", false}, {"a", true}} {
			if _, err := s.Begin(t.Context(), tt.key, begun("a"), time.Minute); (err == nil) != tt.ok {
				t.Errorf("Begin of %s = %v", tt.key, err)
			}
		}
		time.Sleep(time.Minute)
		for _, key := range []string{"c", "d"} {
			if got, err := s.Begin(t.Context(), key, begun(key), time.Minute); err != nil || got.Owner != key {
				t.Errorf("Begin of %s = %+v, %v", key, got, err)
			}
		}
	})
}

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
		for k, v := range m {
			next[k] = v
		}
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
