package guard

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/memlock"
)

func TestMostOfRecentHolds(t *testing.T) {
	tests := []struct {
		name     string
		holds    func(add func(n int, d time.Duration))
		from, to time.Duration
	}{
		{"none", func(func(int, time.Duration)) {}, 0, 0},
		{"one", func(add func(int, time.Duration)) { add(1, 500*time.Millisecond) }, 500 * time.Millisecond, 630 * time.Millisecond},
		{"short ones", func(add func(int, time.Duration)) { add(50, time.Microsecond) }, time.Microsecond, 2 * time.Millisecond},
		{"a long one in ten", func(add func(int, time.Duration)) { add(9, 100*time.Millisecond); add(1, time.Minute) }, 100 * time.Millisecond, 126 * time.Millisecond},
		{"two long ones in ten", func(add func(int, time.Duration)) { add(8, 100*time.Millisecond); add(2, time.Minute) }, time.Minute, 76 * time.Second},
		{"long ago", func(add func(int, time.Duration)) { add(100, time.Minute); add(500, 10*time.Millisecond) }, 10 * time.Millisecond, 13 * time.Millisecond},
		{"longer than any class", func(add func(int, time.Duration)) { add(1, 1000*time.Hour) }, time.Hour, 1000 * time.Hour},
	}
	for _, tt := range tests {
		var r recentHolds
		tt.holds(func(n int, d time.Duration) {
			for range n {
				r.add(d)
			}
		})
		if got := r.most(); got < tt.from || got > tt.to {
			t.Errorf("%s: most() = %v, want %v to %v", tt.name, got, tt.from, tt.to)
		}
	}
}

// A job had nothing to do once. Ever since, it takes half a minute.
func TestFirstHoldsAreCounted(t *testing.T) {
	for range 100 { // as the sampling is by chance
		var r recentHolds
		r.add(time.Microsecond)
		for range 5 {
			if r.due() {
				r.add(30 * time.Second)
			}
		}
		if most := r.most(); most < 30*time.Second {
			t.Fatalf("after a short hold and five of 30s, most are done after %v", most)
		}
	}
}

// Of many, one short hold in eight is counted, whatever the pattern, and every hold as soon as they are long.
func TestShortHoldsAreSampled(t *testing.T) {
	const calls, short, long = 4000, 10 * time.Microsecond, 300 * time.Millisecond
	var r recentHolds
	// hold reports whether a hold of d is counted.
	hold := func(d time.Duration) bool {
		due := r.due()
		if due {
			r.add(d)
		}
		return due
	}
	counted := 0
	for range calls {
		if hold(short) {
			counted++
		}
	}
	if counted < calls/11 || counted > calls/6 {
		t.Errorf("%d of %d short holds are counted, want one in eight", counted, calls)
	}
	for i := range calls {
		hold([]time.Duration{short, short, short, long}[i%4])
	}
	if most := r.most(); most < long {
		t.Errorf("where each fourth is long, nine of ten are done after %v, want %v", most, long)
	}
	for !hold(long) {
	}
	for range calls {
		if !hold(long) {
			t.Fatal("a hold after a long one is not counted")
		}
	}
}

// Each length is in the class whose end is the next one above it.
func TestClassesOfHolds(t *testing.T) {
	for d := time.Duration(1); d < 3*time.Hour; d += d/7 + 1 {
		class := classOf(d)
		if d >= endOf(class) || class > 0 && d < endOf(class-1) {
			t.Errorf("%v is in class %d, from %v to %v", d, class, endOf(max(class-1, 0)), endOf(class))
		}
	}
}

// TestRetryAfter is a busy call beside a holder of ten minutes, after calls of this guard that took half a second.
func TestRetryAfter(t *testing.T) {
	tests := []struct {
		name     string
		calls    int
		lease    time.Duration // of the holder
		opts     []Option
		from, to time.Duration
	}{
		{"nothing is known", 0, 0, nil, 0, 0},
		{"a short lease", 0, time.Second, nil, 800 * time.Millisecond, time.Second},
		{"a lease that may be renewed", 0, 30 * time.Second, nil, 4 * time.Second, 5 * time.Second},
		{"a declared lease", 0, 30 * time.Second, []Option{Lease(time.Minute)}, 24 * time.Second, 30 * time.Second},
		{"recent calls", 20, 30 * time.Second, nil, 500 * time.Millisecond, 800 * time.Millisecond},
		{"recent calls, and no lease", 20, 0, nil, 500 * time.Millisecond, 800 * time.Millisecond},
		{"the rest of the lease", 20, 100 * time.Millisecond, nil, 80 * time.Millisecond, 100 * time.Millisecond},
		{"capped", 20, 30 * time.Second, []Option{MaxRetryAfter(50 * time.Millisecond)}, 40 * time.Millisecond, 50 * time.Millisecond},
	}
	for _, tt := range tests {
		synctest.Test(t, func(t *testing.T) {
			l := memlock.New()
			type Order struct{ ID string }
			g := Must(New(l, append([]Option{Name("settle"), Key("order:#{req.ID}")}, tt.opts...)...))
			settle := Must(Func(g, func(context.Context, Order) (bool, error) {
				time.Sleep(500 * time.Millisecond)
				return true, nil
			}))
			for range tt.calls {
				if _, err := settle(t.Context(), Order{"7"}); err != nil {
					t.Fatal(err)
				}
			}
			hold, err := l.Acquire(t.Context(), lock.Request{Key: "order:7", Lease: tt.lease})
			if err != nil {
				t.Fatal(err)
			}
			seen := map[time.Duration]bool{}
			for range 20 {
				_, err = settle(t.Context(), Order{"7"})
				e, ok := errors.AsType[*Error](err)
				if !ok || e.RetryAfter < tt.from || e.RetryAfter > tt.to {
					t.Fatalf("%s: settle: %#v, want to come again after %v to %v", tt.name, err, tt.from, tt.to)
				}
				seen[e.RetryAfter] = true
			}
			if tt.to > 0 && len(seen) < 10 {
				t.Errorf("%s: %d of 20 come at different times", tt.name, len(seen))
			}
			_ = hold.Release(t.Context())
		})
	}
}

// lateLocker is busy, for a holder whose lease was over a second ago by its own clock.
type lateLocker struct{}

func (lateLocker) Acquire(context.Context, lock.Request) (lock.Hold, error) {
	return nil, &lock.BusyError{Remaining: -time.Second}
}

func TestRetryAfterOfALeaseThatIsOver(t *testing.T) {
	g := Must(New(lateLocker{}, Name("a"), Key("b"), OneKey(), Lease(time.Second)))
	err := Must(Job(g, func(context.Context) error { return nil }))(t.Context())
	if e, ok := errors.AsType[*Error](err); !ok || !errors.Is(err, ErrBusy) || e.RetryAfter < 0 {
		t.Errorf("error %v, want ErrBusy", err)
	}
}
