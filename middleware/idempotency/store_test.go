package idempotency_test

import (
	"bytes"
	"fmt"
	"net/http"
	"reflect"
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
