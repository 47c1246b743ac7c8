package guard_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson"
)

// slack is for a machine that others use, too.
const slack = 500 * time.Millisecond

// A guard answers an outage half a second after its Wait, however the service is gone. The bound on the roll-back of a
// guard with several keys comes on top of it.
func TestOutageIsAnsweredSoonAfterWait(t *testing.T) {
	proxy := redistest.Start(t).Front(t)
	rdb := redis.NewClient(&redis.Options{Addr: proxy.Addr})
	client, err := redisson.New(rdb)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		proxy.Thaw()
		_ = client.Close()
		_ = rdb.Close()
	})
	one, _ := guarded(t, client, settled, guard.Wait(100*time.Millisecond))
	freezing := func(ctx context.Context, key string) (string, error) {
		if key == "b" {
			proxy.Freeze()
		}
		return key, nil
	}
	two, _ := guarded(t, client, settled, guard.Wait(100*time.Millisecond), guard.ReleaseTimeout(200*time.Millisecond),
		guard.Key("#{map(req.Items, reach(#))}"), guard.TemplateFunc("reach", freezing))
	patient, _ := guarded(t, client, settled, guard.Wait(10*time.Second))
	if _, err := patient(t.Context(), Order{ID: "7"}); err != nil { // connected, which may take a while
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name   string
		settle work
		bound  time.Duration
	}{
		{"one key", one, 600 * time.Millisecond},
		{"roll-back", two, 800 * time.Millisecond},
	} {
		proxy.Freeze()
		start := time.Now()
		_, err := tt.settle(t.Context(), Order{ID: "7", Items: []string{"a", "b"}})
		took := time.Since(start)
		proxy.Thaw()
		if !errors.Is(err, guard.ErrOutage) {
			t.Errorf("%s: settle: %v, want ErrOutage", tt.name, err)
		}
		if took < 100*time.Millisecond || took > tt.bound+slack {
			t.Errorf("%s: took %v, want %v at most", tt.name, took, tt.bound)
		}
	}
}

// A key that holds something else is the server's fault: no outage, no busy lock, and nothing that a policy answers.
func TestKeyOfAnotherType(t *testing.T) {
	s := redistest.Any(t)
	rdb := s.Client(t)
	client, err := redisson.New(rdb)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	if err := rdb.Set(t.Context(), "order:7", "settled", 0).Err(); err != nil {
		t.Fatal(err)
	}
	settle, seen := guarded(t, client, settled, guard.Busy(guard.RunUnlocked), guard.Outage(guard.RunUnlocked))
	got, err := settle(t.Context(), Order{ID: "7"})
	if e, ok := errors.AsType[*guard.Error](err); got != "" || !ok || e.Err != guard.ErrFault {
		t.Errorf("settle = %q, %v, want ErrFault", got, err)
	}
	if e := seen.only(t); e.Outcome != guard.OutcomeFault {
		t.Errorf("event %+v, want the outcome fault", e)
	}
}

// The line on a lock that was lost because the password was rolled says so, also where several locks were to be renewed together.
func TestLogNamesTheRolledPassword(t *testing.T) {
	s := redistest.Start(t)
	admin := s.Client(t)
	client, err := redisson.Open("redis://:old@"+s.Addr, redisson.WatchdogTimeout(time.Second))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	do := func(args ...any) {
		if err := admin.Do(t.Context(), args...).Err(); err != nil {
			t.Error(err)
		}
	}
	do("config", "set", "requirepass", "old")
	var log bytes.Buffer
	settle, _ := guarded(t, client, func(ctx context.Context, o Order) (string, error) {
		if o.ID == "1" {
			do("config", "set", "requirepass", "new")
			do("client", "kill", "type", "normal", "skipme", "yes")
		}
		<-ctx.Done()
		return "", context.Cause(ctx)
	}, guard.Log(slog.New(slog.NewTextHandler(&log, nil))))
	var calls sync.WaitGroup
	for _, id := range []string{"3", "2", "1"} {
		calls.Go(func() {
			if id == "1" {
				time.Sleep(200 * time.Millisecond) // the others have their locks
			}
			if _, err := settle(t.Context(), Order{ID: id}); !errors.Is(err, guard.ErrLost) || !errors.Is(err, lock.ErrRefused) {
				t.Errorf("settle = %v, want ErrLost for ErrRefused", err)
			}
		})
	}
	calls.Wait()
	if text := log.String(); strings.Count(text, "outcome=lost") != 3 || strings.Count(text, "WRONGPASS") < 3 {
		t.Errorf("want three lines on locks that were lost for WRONGPASS: %s", text)
	}
}

// On Redis, too, an explanation says whether a key is held, also by Redisson.
func TestExplainOnRedis(t *testing.T) {
	s := redistest.Any(t)
	rdb := s.Client(t)
	client, err := redisson.New(rdb)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	g := guard.Must(guard.New(client, guard.Name("order.settle"), guard.Key("#{req.Items}")))
	if err := rdb.HSet(t.Context(), "b", "6f0829ed-bfd3-4e6f-bba3-6f3d66cd1765:41", 1).Err(); err != nil {
		t.Fatal(err)
	}
	if err := rdb.PExpire(t.Context(), "b", time.Minute).Err(); err != nil {
		t.Fatal(err)
	}
	if err := rdb.RPush(t.Context(), "c", "mine").Err(); err != nil {
		t.Fatal(err)
	}
	e, err := g.Explain(t.Context(), map[string]any{"req": Order{Items: []string{"a", "b", "c"}}})
	if err != nil || len(e.Keys) != 3 {
		t.Fatalf("explanation %+v, %v", e, err)
	}
	if a, b, c := e.Keys[0], e.Keys[1], e.Keys[2]; !a.Known || a.Busy || !b.Known || !b.Busy || c.Known || c.Err == nil {
		t.Errorf("keys %+v, want free, held, refused", e.Keys)
	} else if b.Remaining <= 30*time.Second || b.Remaining > time.Minute {
		t.Errorf("the key is held for %v, want about a minute", b.Remaining)
	}
	if got := rdb.Keys(t.Context(), "[abc]").Val(); len(got) != 2 {
		t.Errorf("keys afterwards: %q", got)
	}
}
