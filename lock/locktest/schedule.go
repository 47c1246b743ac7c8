package locktest

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/lock"
)

// random is what only shows when calls of all sorts come together.
var random = []promise{
	// Each run of the suite follows other schedules, with seeds of their own.
	{"random calls get what they should", func(s *scene) {
		seed := s.suite.seed()
		failures := make([]error, schedules)
		var all sync.WaitGroup
		for i := range failures {
			all.Go(func() { failures[i] = s.schedule(seed + uint64(i)).run() })
		}
		all.Wait()
		for i, err := range failures {
			if err != nil {
				s.Errorf("seed %d: %v", seed+uint64(i), err)
			}
		}
	}},
}

const (
	schedules        = 6 // at the same time: most of theirs is spent waiting
	stepsPerSchedule = 40
	keysPerSchedule  = 3 // so few that calls meet on them
)

// Seed repeats the random schedule that a failure names, for as far as the Locker takes the same time as before.
func Seed(seed uint64) Option {
	return optionFunc(func(s *suite) { s.seed = func() uint64 { return seed } })
}

// schedule is the one that seed stands for. It takes locks of the scene's kind, or of its whole family. Only Read and Write
// are waited for together: a release need not wake those who wait for a lock of another kind.
func (s *scene) schedule(seed uint64) *schedule {
	r := rand.New(rand.NewPCG(seed, 0))
	c := &schedule{
		scene: s, rand: r, prefix: fmt.Sprintf("%s:%d:", s.key, seed),
		kinds: []lock.Kind{s.kind}, limit: 1 + r.IntN(3), waits: r.IntN(2) == 0,
		model: model{waiting: make(map[string]int)}, served: make(chan *waiter, stepsPerSchedule), seen: make(map[string]int),
	}
	family := func(k lock.Kind) bool { return k.Family() == s.kind.Family() }
	if !c.waits || s.kind.Family() == lock.Write {
		c.kinds = slices.DeleteFunc(slices.Clone(s.suite.kinds), func(k lock.Kind) bool { return !family(k) })
	}
	c.strange = slices.DeleteFunc(slices.Clone(s.suite.kinds), family)
	return c
}

// schedule is a random sequence of calls to a Locker, and a model that knows what each must bring. One goroutine makes all
// of them, except those that wait in line.
//
// Near the end of a lease, only the Locker knows whether it is over. So no step is made then: the schedule waits until the
// end has been announced. If a step takes so long that a lease may have ended meanwhile, its result proves nothing and is undone.
type schedule struct {
	*scene
	rand    *rand.Rand
	prefix  string      // what the names of all keys begin with
	kinds   []lock.Kind // of one family
	strange []lock.Kind // of the others
	limit   int         // of permits
	waits   bool        // whether some calls wait in line

	model   model
	waiters []*waiter
	served  chan *waiter   // those whose Acquire has returned
	log     []string       // what was done
	seen    map[string]int // how often it led to what
	err     error          // the first broken promise, after which no step is made
}

// waiter is a call that waits in line.
type waiter struct {
	under
	r        lock.Request
	cancel   context.CancelCauseFunc
	canceled bool

	hold lock.Hold // set once it is served
	err  error
}

// run makes all steps, gives back what is held then, and returns the first broken promise with the way to it.
func (s *schedule) run() error {
	for range stepsPerSchedule {
		s.round(s.step)
	}
	s.round(s.finish)
	if s.err == nil {
		return nil
	}
	s.giveUp()
	return fmt.Errorf("%w\n\t%s", s.err, strings.Join(s.log, "\n\t"))
}

// round does one thing, and looks at what happens by itself before and after.
func (s *schedule) round(do func()) {
	for _, f := range []func(){s.outlive, s.check, do, s.catchUp, s.check} {
		if s.err == nil {
			f()
		}
	}
}

// fail notes a broken promise.
func (s *schedule) fail(format string, args ...any) {
	s.err = cmp.Or(s.err, fmt.Errorf(format, args...))
}

// giveUp leaves as little behind as a broken Locker lets it.
func (s *schedule) giveUp() {
	for _, w := range s.waiters {
		w.cancel(errCause)
		go func() {
			if a := <-s.served; a.hold != nil {
				_ = a.hold.Release(context.Background())
			}
		}()
	}
	for _, c := range s.model.calls {
		_ = c.hold.Release(context.Background())
	}
}

// step does one thing at random.
func (s *schedule) step() {
	switch n := s.rand.IntN(100); {
	case n < 45 && len(s.model.liveCalls()) < 10:
		s.enter(s.place(), s.randomRequest())
	case n < 55:
		s.wait()
	case n < 58:
		s.cancel()
	case n < 66:
		s.sleep()
	case len(s.model.calls) == 0: // nothing to do with a hold
	case n < 71:
		s.keep(s.pick())
	case n < 78:
		s.extend(s.pick())
	default:
		s.release(s.pick())
	}
}

// finish releases everything twice, and looks whether the keys are free then.
func (s *schedule) finish() {
	s.releaseAll()
	for _, c := range s.model.calls {
		if c.state == kept {
			sleepUntil(c.due)
			c.state = released
		}
		s.release(c)
	}
	for i := range keysPerSchedule {
		s.round(func() { s.enter(under{}, s.request(i, s.kinds[0])) })
	}
	s.releaseAll()
}

// releaseAll releases the live holds, until nobody holds a lock or waits for one. If none is live, somebody waits for the end of what was
// kept.
func (s *schedule) releaseAll() {
	for s.err == nil && len(s.model.liveCalls())+len(s.waiters) > 0 {
		s.round(func() {
			if calls := s.model.liveCalls(); len(calls) > 0 {
				s.release(choose(s, calls))
			} else {
				s.sleep()
			}
		})
	}
}

// place picks where in the tree of calls the next one is made.
func (s *schedule) place() under {
	u := under{cut: s.chance(8), detached: s.chance(30)}
	if !s.chance(25) && len(s.model.calls) > 0 {
		u.outer = s.pick()
		u.detached = u.detached || u.outer.ended()
	}
	return u
}

// context is what a call at u passes to Acquire.
func (u under) context() context.Context {
	ctx := context.Background()
	if u.outer != nil {
		ctx = u.outer.hold.Context()
	}
	if u.detached {
		ctx = context.WithoutCancel(ctx)
	}
	if u.cut {
		ctx = lock.NewOwner(ctx)
	}
	return ctx
}

// pick chooses one of the calls that got their lock, mostly one that still holds it.
func (s *schedule) pick() *call {
	calls := s.model.liveCalls()
	if len(calls) == 0 || s.chance(15) {
		calls = s.model.calls
	}
	return choose(s, calls)
}

func choose[T any](s *schedule, from []T) T { return from[s.rand.IntN(len(from))] }

// chance is true in so many of a hundred cases.
func (s *schedule) chance(percent int) bool { return s.rand.IntN(100) < percent }

func (s *schedule) request(key int, kind lock.Kind) lock.Request {
	r := lock.Request{Key: s.prefix + string(rune('a'+key)), Kind: kind}
	if kind == lock.Permit {
		r.Limit = s.limit
	}
	return r
}

// randomRequest is one of a kind of the family, or of a strange one if it can't but be refused.
func (s *schedule) randomRequest() lock.Request {
	key := s.rand.IntN(keysPerSchedule)
	r := s.request(key, choose(s, s.kinds))
	stays := func(c *call) bool { return c.due.IsZero() }
	if len(s.strange) > 0 && s.chance(10) && slices.ContainsFunc(s.model.holders(r.Key), stays) {
		r = s.request(key, choose(s, s.strange))
	}
	switch n := s.rand.IntN(10); {
	case n < 4:
		r.Lease = s.span()
	case n < 5:
		r.MaxHold = s.span()
	case n < 6:
		r.Lease, r.MaxHold = time.Minute, s.span()
	case n < 7:
		r.Lease = time.Minute
	}
	return r
}

// span is a time that the schedule can wait for.
func (s *schedule) span() time.Duration {
	return time.Duration(150+s.rand.IntN(250)) * time.Millisecond
}

func (s *schedule) note(format string, args ...any) {
	s.log = append(s.log, fmt.Sprintf(format, args...))
}

func (s *schedule) saw(what string) { s.seen[what]++ }

// text is r in the words of the log.
func (s *schedule) text(r lock.Request) string {
	return fmt.Sprintf("%v %q, lease %v, max hold %v", r.Kind, r.Key[len(s.prefix):], r.Lease, r.MaxHold)
}

func (u under) String() string {
	n := 0 // the root
	if u.outer != nil {
		n = u.outer.n
	}
	return fmt.Sprintf("under #%d, without cancel: %v, as a new owner: %v", n, u.detached, u.cut)
}
