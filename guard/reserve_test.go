package guard_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/memlock"
	"github.com/latchkey-go/latchkey/redisson"
	"github.com/redis/go-redis/v9"
)

// Locks that a call wants together, with the only locker that takes them in one question.

// countScripts counts the scripts that go to a server.
type countScripts struct{ n atomic.Int64 }

func (c *countScripts) DialHook(next redis.DialHook) redis.DialHook { return next }

func (c *countScripts) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if strings.HasPrefix(cmd.Name(), "eval") {
			c.n.Add(1)
		}
		return next(ctx, cmd)
	}
}

func (c *countScripts) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		for _, cmd := range cmds {
			if strings.HasPrefix(cmd.Name(), "eval") {
				c.n.Add(1)
			}
		}
		return next(ctx, cmds)
	}
}

// openRedis returns a client of a server of its own, with what it asks.
func openRedis(t *testing.T, s *redistest.Server) (*redisson.Client, *countScripts) {
	t.Helper()
	count, rdb := new(countScripts), s.Client(t)
	rdb.AddHook(count)
	c := guard.Must(redisson.New(rdb))
	t.Cleanup(func() { _ = c.Close() })
	return c, count
}

func TestOneQuestionForAll(t *testing.T) {
	s := redistest.Start(t)
	c, count := openRedis(t, s)
	var inside []string
	work := func(ctx context.Context, o Order) (string, error) {
		inside = s.Client(t).Keys(ctx, "*").Val()
		return "", nil
	}
	list, _ := guarded(t, c, work, guard.Key("#{req.Items}"), guard.Wait(time.Second))
	stack, seen := stacked(t, c, work, nil, []guard.Option{guard.Wait(time.Second)}, nil)
	items := Order{ID: "7", Items: strings.Split("abcdefghij", "")}
	for name, f := range map[string]func(context.Context, Order) (string, error){"list": list, "stack": stack} {
		for range 6 { // loads the scripts, and finds out where keys are
			guard.Must(f(t.Context(), items))
		}
		before := count.n.Load()
		guard.Must(f(t.Context(), items))
		want := map[string]int{"list": 10, "stack": 12}[name]
		if n := count.n.Load() - before; n > 2 || len(inside) != want {
			t.Errorf("%s: %d scripts, and %q were held, want %d", name, n, inside, want)
		}
	}
	for name, e := range seen {
		if all := e.outcomes(); slices.ContainsFunc(all, func(o string) bool { return o != guard.OutcomeOK }) {
			t.Errorf("%s: outcomes %q", name, all)
		}
	}
	if left := s.Client(t).Keys(t.Context(), "*").Val(); len(left) > 0 {
		t.Errorf("%q are left", left)
	}
}

// Random stacks and lists, some keys of which others hold: calls end as they do where locks are taken one by one, with the same events, and leave the
// same behind.
func TestTogetherAsOneByOne(t *testing.T) {
	s := redistest.Start(t)
	rdb := s.Client(t)
	for seed := range uint64(120) {
		var told [2][]string
		for i := range told {
			rnd := rand.New(rand.NewPCG(seed, 2))
			if err := rdb.FlushDB(t.Context()).Err(); err != nil {
				t.Fatal(err)
			}
			c, _ := openRedis(t, s)
			others, _ := openRedis(t, s)
			told[i] = playStack(t, rnd, [...]lock.Locker{struct{ lock.Locker }{c}, c}[i], others)
		}
		if !slices.Equal(told[0], told[1]) {
			t.Errorf("seed %d: together\n\t%s\none by one\n\t%s", seed, strings.Join(told[1], "\n\t"), strings.Join(told[0], "\n\t"))
		}
	}
}

// someOptions are those of a random guard.
func someOptions(rnd *rand.Rand) (opts []guard.Option) {
	for _, o := range []guard.Option{
		guard.When("req.Free"), guard.Busy(guard.RunUnlocked), guard.Busy(guard.Skip), guard.Wait(20 * time.Millisecond), guard.Lease(5 * time.Second),
		guard.Read(), guard.Fair(), guard.Fenced(), guard.HoldAtLeast(time.Hour),
	} {
		if rnd.IntN(6) == 0 {
			opts = append(opts, o)
		}
	}
	return opts
}

// playStack makes some calls of a random stack beside others who hold some of its keys, and returns what is seen.
func playStack(t *testing.T, rnd *rand.Rand, l, others lock.Locker) (seen []string) {
	t.Helper()
	observe := guard.Observe(func(_ context.Context, e guard.Event) {
		seen = append(seen, fmt.Sprintf("%s: %s, %d keys, %v", e.Guard, e.Outcome, e.Keys, e.Release))
	})
	var members []*guard.Guard
	for i, key := range []string{"t:#{req.ID}", "#{req.Items}", "o:#{req.ID}", "#{req.Items}"}[:2+rnd.IntN(3)] {
		g, err := guard.New(l, append(someOptions(rnd), guard.Name(fmt.Sprint("g", i)), guard.Key(key), observe)...)
		if err != nil {
			return append(seen, "refused")
		}
		members = append(members, g)
	}
	stack, err := guard.Stack(members...)
	if err != nil {
		return append(seen, "refused")
	}
	fail := errors.New("own")
	f, err := guard.Func(stack, func(ctx context.Context, o Order) (string, error) {
		for _, m := range []string{"g0", "g1", "g2", "g3"} {
			seen = append(seen, fmt.Sprint("inside ", m, guard.Held(ctx, m)))
		}
		if o.Free {
			return "", fail
		}
		return "done", nil
	})
	if err != nil {
		return append(seen, "refused")
	}
	for range 3 {
		var holds []lock.Hold
		for _, key := range []string{"t:1", "a", "b", "o:1"} {
			if rnd.IntN(5) == 0 {
				kind := []lock.Kind{lock.Exclusive, lock.Read}[rnd.IntN(2)]
				if h, err := others.Acquire(context.Background(), lock.Request{Key: key, Kind: kind}); err == nil {
					holds = append(holds, h)
				}
			}
		}
		o := Order{ID: []string{"1", "2", ""}[rnd.IntN(3)], Items: [][]string{{"a", "b"}, {"b", "c", "d"}, {"a"}}[rnd.IntN(3)], Free: rnd.IntN(2) == 0}
		got, err := f(context.Background(), o)
		text := fmt.Sprint(err)
		if e, ok := errors.AsType[*guard.Error](err); ok {
			text = fmt.Sprint(e.Guard, e.Err)
		}
		seen = append(seen, fmt.Sprintf("%v: %q, %s", o, got, text))
		for _, h := range holds {
			if err := h.Release(context.Background()); err != nil {
				t.Errorf("the other one: %v", err)
			}
		}
	}
	return seen
}

// slowReserver is a locker that is asked for all locks at once, has none of them, and takes its time to say so.
type slowReserver struct {
	lock.Locker
	takes time.Duration
	waits []time.Duration
}

func (l *slowReserver) Reserve(ctx context.Context, _ []lock.Request) (context.Context, int, func(), error) {
	time.Sleep(l.takes)
	return ctx, 0, func() {}, nil
}

func (l *slowReserver) Acquire(ctx context.Context, r lock.Request) (lock.Hold, error) {
	l.waits = append(l.waits, r.Wait)
	return l.Locker.Acquire(ctx, r)
}

// TestReservingIsPartOfTheWait holds that a question for all locks uses up the wait for each of them.
func TestReservingIsPartOfTheWait(t *testing.T) {
	t.Parallel()
	const wait, takes = 10 * time.Second, 50 * time.Millisecond
	l := &slowReserver{Locker: memlock.New(), takes: takes}
	settle := guard.Must(guard.Func(guard.Must(guard.New(l, guard.Name("settle"), guard.Key("#{req.Items}"), guard.Wait(wait))), settled))
	if _, err := settle(t.Context(), Order{Items: []string{"a", "b"}}); err != nil {
		t.Fatal(err)
	}
	if len(l.waits) != 2 || l.waits[0] > wait-takes || l.waits[1] > l.waits[0] {
		t.Errorf("the locks are waited for %v, of %v", l.waits, wait)
	}
}
