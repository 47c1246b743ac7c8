package guard_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/memlock"
)

func hundred() Order {
	var o Order
	for i := range 100 {
		o.Items = append(o.Items, fmt.Sprintf("sku%02d", i))
	}
	return o
}

// A service that does not answer is waited for once, however many locks there are to be given back.
func TestManyReleasesShareOneBound(t *testing.T) {
	for _, tt := range []struct {
		name string
		held string // by another
		took time.Duration
		want error
	}{
		{"after the work", "", 5 * time.Second, nil},
		{"on roll-back", "sku99", 5 * time.Second, guard.ErrBusy},
	} {
		synctest.Test(t, func(t *testing.T) {
			l := newSpy()
			l.release = func(ctx context.Context) { <-ctx.Done() }
			if tt.held != "" {
				if _, err := l.Locker.Acquire(t.Context(), lock.Request{Key: tt.held}); err != nil {
					t.Fatal(err)
				}
			}
			settle, _ := guarded(t, l, settled, guard.Key("#{req.Items}"))
			start := time.Now()
			if _, err := settle(t.Context(), hundred()); !errors.Is(err, tt.want) {
				t.Errorf("%s: settle: %v, want %v", tt.name, err, tt.want)
			}
			if got := time.Since(start); got != tt.took {
				t.Errorf("%s: took %v, want %v", tt.name, got, tt.took)
			}
		})
	}
}

// gatherer is a locker that gives back many locks with one question.
type gatherer struct {
	*memlock.Locker
	answer error
	asked  [][]string // the keys of each question
}

type gathered struct {
	lock.Hold
	key string
}

func (g *gatherer) Acquire(ctx context.Context, r lock.Request) (lock.Hold, error) {
	hold, err := g.Locker.Acquire(ctx, r)
	return &gathered{hold, r.Key}, err
}

func (h *gathered) Release(ctx context.Context) error { return h.Hold.Release(ctx) }

func (g *gatherer) ReleaseAll(ctx context.Context, holds []lock.Hold) error {
	var keys []string
	for _, h := range holds {
		keys = append(keys, h.(*gathered).key)
		if err := h.Release(ctx); err != nil {
			return err
		}
	}
	g.asked = append(g.asked, keys)
	return g.answer
}

func TestReleaseAllOfTheLocker(t *testing.T) {
	for _, tt := range []struct {
		answer, want error
		outcome      string
	}{
		{nil, nil, guard.OutcomeOK},
		{errors.New("connection reset"), nil, guard.OutcomeOK},
		{&lock.LostError{Held: time.Second}, guard.ErrLost, guard.OutcomeLost},
	} {
		l := &gatherer{Locker: memlock.New(), answer: tt.answer}
		settle, seen := guarded(t, l, settled, guard.Key("#{req.Items}"))
		if _, err := settle(t.Context(), Order{Items: []string{"a", "b", "c"}}); !errors.Is(err, tt.want) {
			t.Errorf("settle: %v, want %v", err, tt.want)
		}
		if len(l.asked) != 1 || !slices.Equal(l.asked[0], []string{"c", "b", "a"}) {
			t.Errorf("asked to give back %q, want all at once, the last first", l.asked)
		}
		if e := seen.only(t); e.Outcome != tt.outcome || !errors.Is(e.Release, tt.answer) {
			t.Errorf("event %+v, want %s and the answer", e, tt.outcome)
		}
	}
}

// clock is a locker whose holds say themselves how long they are good, and what becomes of their release.
type clock struct {
	remaining map[string]time.Duration // from the moment in which they are taken
	releases  map[string]func() error
}

type clockHold struct {
	*clock
	ctx   context.Context
	key   string
	until time.Time
}

func (c *clock) Acquire(ctx context.Context, r lock.Request) (lock.Hold, error) {
	return &clockHold{c, ctx, r.Key, time.Now().Add(c.remaining[r.Key])}, nil
}

func (h *clockHold) Context() context.Context { return h.ctx }
func (h *clockHold) Remaining() time.Duration { return max(0, time.Until(h.until)) }
func (h *clockHold) Release(context.Context) error {
	if release := h.releases[h.key]; release != nil {
		return release()
	}
	return nil
}

// A loss is what the clocks of the holds say when the work returns. What becomes of them while the guard gives them back
// is no failure of the work.
func TestLossIsDecidedWhenTheWorkReturns(t *testing.T) {
	lost := &lock.LostError{Held: time.Second}
	slow := func() error {
		time.Sleep(3 * time.Second)
		return lost
	}
	quick := func() error { return lost }
	long, short := time.Minute, 2*time.Second
	for _, tt := range []struct {
		name     string
		leases   map[string]time.Duration
		work     time.Duration
		releases map[string]func() error
		outcome  string
	}{
		{"good", map[string]time.Duration{"a": long}, time.Second, nil, guard.OutcomeOK},
		{"over, and nobody noticed", map[string]time.Duration{"a": short}, 3 * time.Second, nil, guard.OutcomeLost},
		{"over in this moment", map[string]time.Duration{"a": short}, 2 * time.Second, nil, guard.OutcomeLost},
		{"one of two is over", map[string]time.Duration{"a": long, "b": short}, 3 * time.Second, nil, guard.OutcomeLost},
		{"over at its slow release", map[string]time.Duration{"a": short}, time.Second, map[string]func() error{"a": slow}, guard.OutcomeOK},
		{"over at the slow release of one", map[string]time.Duration{"a": short, "b": short}, time.Second, map[string]func() error{"a": slow}, guard.OutcomeOK},
		{"taken away in time", map[string]time.Duration{"a": long}, time.Second, map[string]func() error{"a": quick}, guard.OutcomeLost},
		{"taken away beside a slow release", map[string]time.Duration{"a": short, "b": short}, time.Second, map[string]func() error{"a": quick, "b": slow}, guard.OutcomeLost},
	} {
		synctest.Test(t, func(t *testing.T) {
			l := &clock{remaining: tt.leases, releases: tt.releases}
			settle, seen := guarded(t, l, func(context.Context, Order) (string, error) {
				time.Sleep(tt.work)
				return "some", nil
			}, guard.Key("#{req.Items}"))
			_, err := settle(t.Context(), Order{Items: slices.Collect(maps.Keys(tt.leases))})
			e := seen.only(t)
			if e.Outcome != tt.outcome || errors.Is(err, guard.ErrLost) != (tt.outcome == guard.OutcomeLost) {
				t.Errorf("%s: settle: %v, event %+v, want %s", tt.name, err, e, tt.outcome)
			}
			if len(tt.releases) > 0 && !errors.Is(e.Release, lost) {
				t.Errorf("%s: event %+v does not tell of the release", tt.name, e)
			}
		})
	}
}

// shy hides what a hold can do besides being one: as a locker of an older day.
type shy struct{ *memlock.Locker }

type shyHold struct{ lock.Hold }

func (s shy) Acquire(ctx context.Context, r lock.Request) (lock.Hold, error) {
	hold, err := s.Locker.Acquire(ctx, r)
	if err != nil {
		return nil, err
	}
	return shyHold{hold}, nil
}

func (h shyHold) Release(ctx context.Context) error {
	time.Sleep(3 * time.Second)
	return h.Hold.Release(ctx)
}

// A hold that does not know how long it is good is good for what was declared.
func TestSlowReleaseOfALease(t *testing.T) {
	for _, opt := range []guard.Option{guard.Lease(2 * time.Second), guard.MaxHold(2 * time.Second)} {
		synctest.Test(t, func(t *testing.T) {
			settle, seen := guarded(t, shy{memlock.New()}, func(context.Context, Order) (string, error) {
				time.Sleep(time.Second)
				return "some", nil
			}, opt)
			if _, err := settle(t.Context(), Order{ID: "7"}); err != nil {
				t.Errorf("settle: %v", err)
			}
			if e := seen.only(t); e.Outcome != guard.OutcomeOK || !errors.Is(e.Release, lock.ErrLost) {
				t.Errorf("event %+v, want the loss as the release's own", e)
			}
		})
	}
}

// Work that takes as long as its lease has lost it, also if it returns in the very moment.
func TestWorkAsLongAsItsLease(t *testing.T) {
	for _, tt := range []struct {
		opt     guard.Option
		outcome string
	}{{guard.Lease(time.Second), guard.OutcomeLost}, {guard.MaxHold(time.Second), guard.OutcomeMaxHold}} {
		for range 20 { // which of two timers comes first is chance
			synctest.Test(t, func(t *testing.T) {
				settle, seen := guarded(t, memlock.New(), func(context.Context, Order) (string, error) {
					time.Sleep(time.Second)
					return "some", nil
				}, tt.opt)
				if _, err := settle(t.Context(), Order{ID: "7"}); !errors.Is(err, guard.ErrLost) {
					t.Errorf("settle: %v, want ErrLost", err)
				}
				if e := seen.only(t); e.Outcome != tt.outcome {
					t.Errorf("event %+v, want %s", e, tt.outcome)
				}
			})
		}
	}
}

// Work that ignores its context cannot make the guard report success after a loss.
func TestWorkThatIgnoresItsContext(t *testing.T) {
	for _, lose := range []struct {
		name string
		opts []guard.Option
		by   func(*memlock.Locker)
	}{
		{"lease", []guard.Option{guard.Lease(time.Second)}, nil},
		{"max hold", []guard.Option{guard.MaxHold(time.Second)}, nil},
		{"force", nil, func(l *memlock.Locker) { l.ForceUnlock("order:7") }},
	} {
		synctest.Test(t, func(t *testing.T) {
			l := memlock.New()
			var others sync.WaitGroup
			settle, seen := guarded(t, l, func(context.Context, Order) (string, error) {
				time.Sleep(time.Minute)
				if lose.by != nil {
					lose.by(l)
				}
				hold, err := l.Acquire(context.Background(), lock.Request{Key: "order:7"})
				if err != nil {
					t.Errorf("%s: the next holder: %v", lose.name, err)
					return "", err
				}
				others.Go(func() { // holds it while ours is given back
					time.Sleep(time.Second)
					_ = hold.Release(context.Background())
				})
				return "done", nil
			}, lose.opts...)
			if got, err := settle(t.Context(), Order{ID: "7"}); got != "done" || !errors.Is(err, guard.ErrLost) {
				t.Errorf("%s: settle = %q, %v, want ErrLost", lose.name, got, err)
			}
			if e := seen.only(t); e.Outcome == guard.OutcomeOK {
				t.Errorf("%s: event %+v", lose.name, e)
			}
			others.Wait()
		})
	}
}

// A panic in one of many releases reaches the caller, and the other locks are given back.
func TestPanicOfOneOfManyReleases(t *testing.T) {
	l := &clock{releases: map[string]func() error{"b": func() error { panic("release") }}}
	var mu sync.Mutex
	var released []string
	for _, key := range []string{"a", "c"} {
		l.releases[key] = func() error {
			mu.Lock()
			defer mu.Unlock()
			released = append(released, key)
			return nil
		}
	}
	l.remaining = map[string]time.Duration{"a": time.Hour, "b": time.Hour, "c": time.Hour}
	settle, seen := guarded(t, l, settled, guard.Key("#{req.Items}"))
	func() {
		defer func() {
			if got := recover(); got != "release" {
				t.Errorf("recovered %v", got)
			}
		}()
		_, _ = settle(t.Context(), Order{Items: []string{"a", "b", "c"}})
	}()
	slices.Sort(released)
	if !slices.Equal(released, []string{"a", "c"}) {
		t.Errorf("released %q, want both others", released)
	}
	if e := seen.only(t); e.Outcome != guard.OutcomePanic {
		t.Errorf("event %+v", e)
	}
}
