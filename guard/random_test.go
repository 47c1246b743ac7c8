package guard_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/memlock"
)

var (
	seed  = flag.Uint64("seed", 0, "play this seed of TestRandomCalls only")
	seeds = flag.Int("seeds", 150, "how many seeds TestRandomCalls plays")
)

// TestRandomCalls plays nested and concurrent calls of guards that are declared at random, over a locker that is late,
// fails, panics and loses locks. Each call keeps a history of what really happened to its work and its locks, and what the
// guard says must agree with it.
func TestRandomCalls(t *testing.T) {
	first, n := uint64(1), *seeds
	if *seed != 0 {
		first, n = *seed, 1
	}
	for s := first; s < first+uint64(n); s++ {
		ok := t.Run(fmt.Sprintf("seed=%d", s), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { newPlay(t, s).run() })
		})
		if !ok {
			t.Fatalf("play it again: go test ./guard -run TestRandomCalls -seed %d", s)
		}
	}
}

// play is one seed: a locker, guards over it, and the calls.
type play struct {
	t     *testing.T
	mu    sync.Mutex // of the dice, which all calls throw
	dice  *rand.Rand
	mem   *memlock.Locker
	funcs []func(context.Context, *history) error
	all   []*history
}

func newPlay(t *testing.T, seed uint64) *play {
	p := &play{t: t, dice: rand.New(rand.NewPCG(seed, 7)), mem: memlock.New()}
	for i := range 5 {
		p.declare(fmt.Sprintf("g%d", i))
	}
	return p
}

func (p *play) n(n int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dice.IntN(n)
}

// chance is true in percent of a hundred times.
func (p *play) chance(percent int) bool { return p.n(100) < percent }

// odd is a time around d, at which nothing else happens.
func (p *play) odd(d time.Duration) time.Duration { return d + time.Duration(1+p.n(999_999)) }

// round sleeps for about d, to a whole millisecond. Work returns at such times, and locks end at odd ones.
func (p *play) round(d time.Duration) {
	time.Sleep(d)
	time.Sleep(time.Until(time.Now().Add(time.Millisecond - 1).Truncate(time.Millisecond)))
}

// declare adds a guarded function with a Spec at random.
func (p *play) declare(name string) {
	g := p.guard(name, true)
	names := []string{name}
	if p.chance(20) {
		g, names = guard.Must(guard.Stack(g, p.guard(name+"'", false))), append(names, name+"'")
	}
	f := guard.Must(guard.Try(g, func(ctx context.Context, r *history) (bool, error) { return true, p.work(ctx, r) }))
	p.funcs = append(p.funcs, func(ctx context.Context, r *history) error {
		r.names = names
		result := f(context.WithValue(ctx, historyKey{}, r), r)
		if result.Ran != (r.ran > 0) || result.Value != (r.ran > 0) {
			p.t.Errorf("%v: Ran = %v, Value = %v, but the work ran %d times", names, result.Ran, result.Value, r.ran)
		}
		return result.Err
	})
}

func (p *play) guard(name string, first bool) *guard.Guard {
	var l lock.Locker = &chaos{p, name, false}
	if p.chance(30) {
		l = &gatheringChaos{chaos{p, name, true}}
	}
	pick := func(opts ...guard.Option) guard.Option { return opts[p.n(len(opts))] }
	opts := []guard.Option{
		guard.Name(name), pick(guard.Key("#{req.Keys}"), guard.Key("#{req.Keys[0]}")),
		guard.Observe(func(ctx context.Context, e guard.Event) { historyOf(ctx).add(e) }),
		pick(guard.Wait(time.Second), guard.Wait(3*time.Second), guard.Wait(0)),
	}
	maybe := func(percent int, opt guard.Option) {
		if p.chance(percent) {
			opts = append(opts, opt)
		}
	}
	maybe(40, guard.Lease(p.odd(2*time.Second)))
	if p.chance(25) {
		opts = append(opts, guard.MaxHold(p.odd(2500*time.Millisecond)))
	}
	maybe(20, guard.HoldAtLeast(p.odd(time.Second)))
	maybe(20, guard.When("!req.Free"))
	maybe(50, guard.Outage(guard.Policy(p.n(3))))
	if first && p.chance(20) {
		return guard.Must(guard.New(l, append(opts, guard.Fallback(func(ctx context.Context, r *history, _ error) (bool, error) {
			r.fallbacks++
			return false, nil
		}))...))
	}
	return guard.Must(guard.New(l, append(opts, pick(guard.Busy(guard.Fail), guard.Busy(guard.Skip), guard.Busy(guard.RunUnlocked), guard.Busy(guard.Replace)))...))
}

func (p *play) run() {
	var calls sync.WaitGroup
	for range 8 {
		calls.Go(func() {
			for range 3 {
				p.round(time.Duration(p.n(2000)) * time.Millisecond)
				_ = p.call(p.t.Context(), 0)
			}
		})
	}
	calls.Wait()
	time.Sleep(time.Hour) // what was kept is over
	synctest.Wait()
	for _, r := range p.all {
		r.check(p.t)
	}
	for _, key := range randomKeys {
		if _, err := p.mem.Acquire(p.t.Context(), lock.Request{Key: key}); err != nil {
			p.t.Errorf("in the end, %s: %v", key, err)
		}
	}
}

var randomKeys = []string{"a", "b", "c"}

var errPanic = errors.New("boom")

// call makes one call of a function at random, and writes down how it ends.
func (p *play) call(ctx context.Context, depth int) (err error) {
	r := &history{play: p, depth: depth, Free: p.chance(20), Keys: slices.Clone(randomKeys)}
	p.mu.Lock()
	p.dice.Shuffle(len(r.Keys), func(i, j int) { r.Keys[i], r.Keys[j] = r.Keys[j], r.Keys[i] })
	p.all = append(p.all, r)
	p.mu.Unlock()
	r.Keys = r.Keys[:1+p.n(2)]
	if p.chance(20) {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, p.odd(time.Duration(p.n(3000))*time.Millisecond))
		defer cancel()
	}
	defer func() {
		if r.panicked = recover(); r.panicked != nil {
			err = errPanic
		}
	}()
	r.err = p.funcs[p.n(len(p.funcs))](ctx, r)
	return r.err
}

// work is what is guarded: it sleeps, calls others, and ends in some way.
func (p *play) work(ctx context.Context, r *history) (err error) {
	r.begin()
	defer func() {
		p.round(0)
		r.end(err)
	}()
	for range p.n(3) {
		switch {
		case p.chance(40):
			p.round(time.Duration(p.n(1500)) * time.Millisecond)
		case p.chance(30):
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-time.After(2 * time.Second):
			}
		case r.depth < 2 && p.chance(30):
			var siblings sync.WaitGroup
			for range 2 {
				siblings.Go(func() { _ = p.call(ctx, r.depth+1) })
			}
			siblings.Wait()
		case r.depth < 2:
			if err := p.call(ctx, r.depth+1); err != nil && p.chance(50) {
				return err
			}
		}
	}
	switch {
	case p.chance(10):
		r.workPanicked = true
		panic(errPanic)
	case p.chance(30):
		return errors.New("own")
	}
	return nil
}

type historyKey struct{}

func historyOf(ctx context.Context) *history { return ctx.Value(historyKey{}).(*history) }

// history is the request of a call, and what really happened to it.
type history struct {
	Keys []string
	Free bool

	play  *play
	depth int
	names []string // of the guards

	ran, fallbacks int
	workErr        error
	workPanicked   bool
	returned       time.Time
	err            error
	panicked       any

	mu           sync.Mutex
	events       map[string][]guard.Event
	holds        map[string][]*chaosHold // by guard
	under        map[string]bool         // the guards whose locks were held when the work began
	lockPanicked bool
}

func (r *history) add(e guard.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.events == nil {
		r.events = make(map[string][]guard.Event)
	}
	r.events[e.Guard] = append(r.events[e.Guard], e)
}

func (r *history) begin() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ran++
	r.under = make(map[string]bool)
	for name, holds := range r.holds {
		for _, h := range holds {
			h.used = true
			r.under[name] = r.under[name] || h.released == 0
		}
	}
}

// end notes for how long the locks are still good when the work returns.
func (r *history) end(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.workErr, r.returned = err, time.Now()
	for _, holds := range r.holds {
		for _, h := range holds {
			h.used, h.left = false, h.Remaining()
		}
	}
}

// loss reports whether a lock of the guard was over when the work returned, and whether a release has answered so while
// all of them were good.
func (r *history) loss(name string) (lost, answered bool) {
	good := guard.Forever
	for _, h := range r.holds[name] {
		good = min(good, h.left)
	}
	for _, h := range r.holds[name] {
		answered = answered || h.gone && (good == guard.Forever || h.answered.Before(r.returned.Add(good)))
	}
	return good == 0, answered
}

// check compares what the guards have said with what happened.
func (r *history) check(t *testing.T) {
	for name, holds := range r.holds {
		for _, h := range holds {
			if h.released != 1 {
				t.Errorf("%s: a lock was released %d times", name, h.released)
			}
		}
	}
	if r.ran > 1 || r.fallbacks > 1 || r.ran > 0 && r.fallbacks > 0 {
		t.Errorf("%v: the work ran %d times, the fallback %d times", r.names, r.ran, r.fallbacks)
	}
	for i, name := range r.names {
		switch n := len(r.events[name]); {
		case n == 1:
			if why := r.contradicts(name, r.events[name][0]); why != "" {
				lost, answered := r.loss(name)
				t.Errorf("%s: %s: %+v\nof a call that ran %d times (under its locks: %v, over when it returned: %v, so answered: %v), with %v, and returned %v, panic %v",
					name, why, r.events[name][0], r.ran, r.under[name], lost, answered, r.workErr, r.err, r.panicked)
			}
		case n > 1, i == 0, r.ran > 0:
			t.Errorf("%s: %d events", name, n)
		}
	}
}

// contradicts says what is wrong with the event of a guard, if anything is.
func (r *history) contradicts(name string, e guard.Event) string {
	ran, under := r.ran > 0, r.ran > 0 && r.under[name]
	lost, answered := r.loss(name)
	// Behind another guard, or in front of one, an error is not the last word. Neither is one before a panic of the locker.
	same := e.Err == r.err || len(r.names) > 1 && (ran || name != r.names[0]) || r.panicked != nil && r.lockPanicked
	want := func(holds bool, why string) string {
		if holds {
			return ""
		}
		return why
	}
	refused := func(sentinel error) string {
		return want(!ran && r.fallbacks == 0 && errors.Is(e.Err, sentinel) && !errors.Is(e.Err, guard.ErrLost) && same, "refused for another reason")
	}
	if under && lost && e.Outcome != guard.OutcomeLost && e.Outcome != guard.OutcomeMaxHold && e.Outcome != guard.OutcomePanic {
		return "a loss was not reported"
	}
	switch e.Outcome {
	case guard.OutcomeOK:
		return want(under && r.workErr == nil && !r.workPanicked && e.Err == nil, "not OK")
	case guard.OutcomeError:
		return want(under && e.Err != nil && (r.workErr != nil || len(r.names) > 1) && same, "not the work's error")
	case guard.OutcomeLost, guard.OutcomeMaxHold:
		return want(under && (lost || answered) && errors.Is(e.Err, guard.ErrLost) && (r.workErr == nil || len(r.names) > 1 || errors.Is(e.Err, r.workErr)), "not lost")
	case guard.OutcomePanic:
		return want((r.workPanicked || r.lockPanicked) && r.panicked != nil, "no panic")
	case guard.OutcomeConditionFalse, guard.OutcomeUnlocked:
		return want(ran && !under && same, "not without the lock")
	case guard.OutcomeSkipped:
		return want(!ran && r.fallbacks == 0 && e.Err == nil && r.err == nil, "not skipped")
	case guard.OutcomeFallback:
		return want(!ran && (r.fallbacks == 1 && r.err == nil || r.lockPanicked), "no fallback")
	case guard.OutcomeBusy:
		return refused(guard.ErrBusy)
	case guard.OutcomeOutage:
		if errors.Is(e.Err, lock.ErrRefused) {
			return "a refusal passes for an outage"
		}
		return refused(guard.ErrOutage)
	case guard.OutcomeFault:
		return refused(guard.ErrFault)
	case guard.OutcomeUnsupported:
		return refused(guard.ErrUnsupported)
	case guard.OutcomeReplaced:
		return want(errors.Is(e.Err, guard.ErrReplaced) && !errors.Is(e.Err, guard.ErrFault) && (!ran || r.workErr != nil), "not replaced")
	case guard.OutcomeCanceled:
		return want(!ran && e.Err != nil && same, "not canceled")
	}
	return "an outcome that nobody expects"
}
