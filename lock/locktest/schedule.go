package locktest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/latchkey-go/latchkey/lock"
)

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
}

// keysOfSchedule is how many keys there are: so few that calls meet on them.
const keysOfSchedule = 3

// waiter is a call that waits in line.
type waiter struct {
	under
	r        lock.Request
	cancel   context.CancelCauseFunc
	canceled bool

	hold lock.Hold // set once it is served
	err  error
}

// run makes so many steps, gives back what is held then, and returns the first broken promise with the way to it.
func (s *schedule) run(steps int) error {
	s.model.waiting = make(map[string]int)
	s.served = make(chan *waiter, steps)
	s.seen = make(map[string]int)
	err := s.walk(steps)
	if err != nil {
		s.giveUp()
		err = fmt.Errorf("%w\n\t%s", err, strings.Join(s.log, "\n\t"))
	}
	return err
}

// giveUp leaves as little behind as a broken Locker lets it. There is an error to report already.
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

func (s *schedule) walk(steps int) error {
	for range steps {
		if err := first(s.outlive, s.step, s.catchUp, s.check); err != nil {
			return err
		}
	}
	return s.finish()
}

// first does one thing after the other, until one fails.
func first(do ...func() error) error {
	for _, f := range do {
		if err := f(); err != nil {
			return err
		}
	}
	return nil
}

// step does one thing at random.
func (s *schedule) step() error {
	switch n := s.rand.IntN(100); {
	case n < 45 && len(s.model.liveCalls()) < 10:
		return s.enter(s.place(), s.randomRequest())
	case n < 55:
		s.wait()
	case n < 58:
		return s.cancel()
	case n < 63:
		return s.keep()
	case n < 70:
		return s.extend()
	case n < 78:
		s.sleep()
	default:
		return s.release(s.pick())
	}
	return nil
}

// finish releases everything, until nobody holds a lock or waits for one, and looks whether the keys are free then.
func (s *schedule) finish() error {
	for len(s.model.liveCalls()) > 0 || len(s.waiters) > 0 {
		if err := first(s.outlive, s.releaseLive, s.catchUp, s.check); err != nil {
			return err
		}
	}
	for _, c := range s.model.calls {
		if c.state == kept {
			sleepUntil(c.due)
			c.state = released
		}
		if err := s.release(c); err != nil { // the second time, for most
			return err
		}
	}
	for i := range keysOfSchedule {
		if err := s.enter(under{}, s.request(i, s.kinds[0])); err != nil {
			return err
		}
	}
	for range keysOfSchedule {
		if err := s.releaseLive(); err != nil {
			return err
		}
	}
	return nil
}

// releaseLive releases one of the live holds. If there is none, somebody waits for the end of what was kept.
func (s *schedule) releaseLive() error {
	calls := s.model.liveCalls()
	if len(calls) == 0 {
		s.sleep()
		return nil
	}
	return s.release(choose(s, calls))
}

// place picks where in the tree of calls the next one is made.
func (s *schedule) place() under {
	u := under{cut: s.chance(8), detached: s.chance(30)}
	if !s.chance(25) {
		u.outer = s.pick()
	}
	if u.outer != nil && u.outer.ended() {
		u.detached = true
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

// pick chooses a call that got its lock, mostly one that still holds it. There may be none.
func (s *schedule) pick() *call {
	calls := s.model.liveCalls()
	if len(calls) == 0 || s.chance(15) {
		calls = s.model.calls
	}
	if len(calls) == 0 {
		return nil
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
	key := s.rand.IntN(keysOfSchedule)
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
