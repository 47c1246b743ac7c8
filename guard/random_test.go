package guard_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
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
// fails, panics and loses locks, while somebody switches the guards and drains their Registry. Each call keeps a history of
// what really happened to its work and its locks, and what the guard says must agree with it.
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
	t       *testing.T
	mu      sync.Mutex // of the dice, which all calls throw
	dice    *rand.Rand
	mem     *memlock.Locker
	reg     *guard.Registry
	names   []string       // of its guards
	kinds   []guard.Option // of all guards, if they are kinded
	kinded  bool
	inside  int  // percent of the guards that are in reg
	drains  bool // reg does, once in a while
	drained bool // it did
	funcs   []func(context.Context, *history) error
	all     []*history
}

func newPlay(t *testing.T, seed uint64) *play {
	p := &play{t: t, dice: rand.New(rand.NewPCG(seed, 7)), mem: memlock.New(), reg: newRegistry(t)}
	p.kinds = [][]guard.Option{{guard.Fair()}, {guard.Read(), guard.Write()}, {guard.Limit(2)}}[p.n(3)]
	p.kinded, p.drains, p.inside = p.chance(30), p.chance(40), 50+50*p.n(2)
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
	if p.chance(30) {
		members := []*guard.Guard{g}
		for range 1 + p.n(2) {
			names = append(names, names[len(names)-1]+"'")
			members = append(members, p.guard(names[len(names)-1], false))
		}
		g = guard.Must(guard.Stack(members...))
	}
	f := guard.Must(guard.Try(g, func(ctx context.Context, r *history) (bool, error) { return true, p.work(ctx, r) }))
	p.funcs = append(p.funcs, func(ctx context.Context, r *history) error {
		r.mu.Lock()
		r.names = names
		r.mu.Unlock()
		result := f(context.WithValue(ctx, historyKey{}, r), r)
		if result.Ran != (r.ran > 0) || result.Value != (r.ran > 0) {
			p.t.Errorf("%v: Ran = %v, Value = %v, but the work ran %d times", names, result.Ran, result.Value, r.ran)
		}
		for _, kept := range r.kept {
			if kept.Err() != nil && ctx.Err() == nil {
				p.t.Errorf("%v: the caller's context goes on, and that of who was told ended: %v", names, context.Cause(kept))
			}
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
		guard.Observe(func(ctx context.Context, e guard.Event) {
			if e.Held > 0 {
				p.hook(historyOf(ctx), name)
			}
		}),
		guard.Observe(func(ctx context.Context, e guard.Event) { historyOf(ctx).keep(ctx, name); historyOf(ctx).add(e) }),
	}
	if wait := []time.Duration{0, time.Second, 3 * time.Second, time.Minute}[p.n(4)]; wait > 0 {
		opts = append(opts, guard.Wait(wait))
		if p.chance(20) {
			opts = append(opts, guard.Waiters(1+p.n(2)))
		}
	}
	opts[1] = pick(opts[1], opts[1], guard.KeysFunc(func(r *history) ([]string, error) { return append(r.Keys, r.Keys[0]), nil }))
	if p.chance(p.inside) {
		p.names = append(p.names, name)
		opts = append(opts, guard.In(p.reg), guard.Switchable())
	}
	if p.chance(20) {
		opts = append(opts, guard.Observe(func(ctx context.Context, _ guard.Event) { p.observer(historyOf(ctx)) }))
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
		if p.kinded {
			opts = append(opts, pick(p.kinds...))
		}
		return guard.Must(guard.New(l, append(opts, guard.Fallback(func(ctx context.Context, r *history, _ error) (bool, error) {
			r.keep(ctx, name)
			r.fallbacks++
			return false, nil
		}))...))
	}
	busy := pick(guard.Busy(guard.Fail), guard.Busy(guard.Skip), guard.Busy(guard.RunUnlocked), guard.Busy(guard.Replace))
	if p.kinded {
		opts, busy = append(opts, pick(p.kinds...)), pick(guard.Busy(guard.Fail), guard.Busy(guard.Skip), guard.Busy(guard.RunUnlocked))
	}
	return guard.Must(guard.New(l, append(opts, busy)...))
}

func (p *play) run() {
	var calls sync.WaitGroup
	for range 8 {
		calls.Go(func() {
			for range 3 {
				p.round(time.Duration(p.n(2000)) * time.Millisecond)
				ctx, cancel := context.WithTimeout(p.t.Context(), 10*time.Minute) // replacers can wait for each other
				_ = p.call(ctx, 0)
				cancel()
			}
		})
	}
	levers := p.levers()
	calls.Wait()
	levers()
	time.Sleep(time.Hour) // what was kept is over
	synctest.Wait()
	for _, r := range p.all {
		r.check(p.t)
	}
	p.checkRegistry()
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
	outer, _ := ctx.Value(historyKey{}).(*history)
	r := &history{play: p, depth: depth, outer: outer, Free: p.chance(20), Keys: slices.Clone(randomKeys)}
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
	done := make(chan struct{})
	go func() {
		defer close(done)
		returned := false
		defer func() {
			if p := recover(); p != nil || !returned {
				r.panicked = errPanic
			}
		}()
		r.err = p.funcs[p.n(len(p.funcs))](ctx, r)
		returned = true
	}()
	<-done
	r.mu.Lock()
	r.over = time.Now()
	r.mu.Unlock()
	if r.panicked != nil {
		return errPanic
	}
	return r.err
}

// work is what is guarded: it sleeps, calls others, and ends in some way.
func (p *play) work(ctx context.Context, r *history) (err error) {
	r.begin(ctx)
	defer func() {
		p.round(0)
		r.end(err)
	}()
	for range p.n(3) {
		switch {
		case p.chance(40):
			p.round(time.Duration(p.n(1500)) * time.Millisecond)
		case p.chance(2):
			p.round(30 * time.Second)
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
		if p.chance(50) {
			runtime.Goexit()
		}
		panic(errPanic)
	case p.chance(30):
		return errors.New("own")
	}
	return nil
}
