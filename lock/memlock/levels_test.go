package memlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/lock"
)

// levels is a request for the first key with the others as levels. A key is one letter and its limit: "a2".
func levels(keys string, wait time.Duration) lock.Request {
	var r lock.Request
	for i, k := range strings.Fields(keys) {
		level := lock.Level{Key: k[:1], Limit: int(k[1] - '0')}
		if i == 0 {
			r = lock.Request{Key: level.Key, Kind: lock.Permit, Limit: level.Limit, Wait: wait}
			continue
		}
		r.Levels = append(r.Levels, level)
	}
	return r
}

// get takes what is free, or about to be.
func get(t *testing.T, ctx context.Context, l *Locker, r lock.Request) lock.Hold {
	t.Helper()
	h, err := l.Acquire(ctx, r)
	if err != nil {
		t.Fatalf("Acquire(%+v) = %v", r, err)
	}
	return h
}

// full checks that keys can't be had at once, because level is full.
func full(t *testing.T, ctx context.Context, l *Locker, keys, level string) lock.BusyError {
	t.Helper()
	return refusedFor(t, ctx, l, levels(keys, 0), level)
}

// refusedFor checks that r is refused for that level or, without one, for its rate, and that Peek says so, too.
func refusedFor(t *testing.T, ctx context.Context, l *Locker, r lock.Request, level string) lock.BusyError {
	t.Helper()
	_, err := l.Acquire(ctx, r)
	busy, ok := errors.AsType[*lock.BusyError](err)
	if !ok || busy.Level != level || busy.Rate != (level == "") {
		t.Fatalf("Acquire(%+v) = %v, want busy for %q", r, err, level)
	}
	if said := l.Peek(ctx, r); said == nil || said.Error() != err.Error() {
		t.Errorf("Peek(%+v) = %v, want %v", r, said, err)
	}
	return *busy
}

// line has callers that come one after another and note who is served, by the name they have.
type line struct {
	t      *testing.T
	l      *Locker
	mu     sync.Mutex
	served []string
	wg     sync.WaitGroup
}

// wait has a caller get in line, and keep what it gets for d.
func (n *line) wait(name string, r lock.Request, d time.Duration) {
	n.t.Helper()
	n.waitUnder(context.Background(), name, r, d)
}

func (n *line) waitUnder(ctx context.Context, name string, r lock.Request, d time.Duration) {
	n.t.Helper()
	r.Wait = -1
	n.wg.Go(func() {
		h, err := n.l.Acquire(ctx, r)
		if err != nil {
			n.t.Errorf("%s: Acquire() = %v", name, err)
			return
		}
		n.mu.Lock()
		n.served = append(n.served, name)
		n.mu.Unlock()
		time.Sleep(d)
		release(n.t, h)
	})
	synctest.Wait()
}

// order checks who has been served until now.
func (n *line) order(want ...string) {
	n.t.Helper()
	synctest.Wait()
	n.mu.Lock()
	defer n.mu.Unlock()
	if !slices.Equal(n.served, want) {
		n.t.Errorf("served %q, want %q", n.served, want)
	}
}

func TestLevelsAreTakenTogether(t *testing.T) {
	bubble(t, func(t *testing.T, l *Locker) {
		h := get(t, t.Context(), l, levels("a3 b2 c1", 0))
		if e := full(t, t.Context(), l, "a3 b2 c1", "c"); !e.Here || e.Remaining != 0 {
			t.Errorf("busy with %+v, want Here", e)
		}
		other := get(t, t.Context(), l, levels("a3 b2 d1", 0))
		full(t, t.Context(), l, "a3 b2 e1", "b")
		full(t, t.Context(), l, "e1 b2", "b") // takes no slot of e
		release(t, get(t, t.Context(), l, levels("e1", 0)))
		full(t, t.Context(), l, "a2 e1", "a") // by a limit of its own
		release(t, get(t, t.Context(), l, levels("a3 e1", 0)))
		release(t, h)
		for _, keys := range []string{"c1", "b2", "a2", "c1 a2 b2"} {
			release(t, get(t, t.Context(), l, levels(keys, 0)))
		}
		release(t, other)
	})
}

// Whatever ends a hold ends it at all levels.
func TestLevelsEndTogether(t *testing.T) {
	for _, tt := range []struct {
		name string
		end  func(*testing.T, *Locker, lock.Hold)
		want error // of the release
	}{
		{"lease", func(*testing.T, *Locker, lock.Hold) { time.Sleep(2 * time.Minute) }, lock.ErrLost},
		{"max hold", func(*testing.T, *Locker, lock.Hold) { time.Sleep(time.Minute) }, lock.ErrMaxHold},
		{"force unlock of the key", func(_ *testing.T, l *Locker, _ lock.Hold) { l.ForceUnlock("a") }, lock.ErrLost},
		{"force unlock of a level", func(_ *testing.T, l *Locker, _ lock.Hold) { l.ForceUnlock("c") }, lock.ErrLost},
		{"kept", func(t *testing.T, l *Locker, h lock.Hold) {
			if err := h.(keeper).Keep(t.Context(), time.Minute); err != nil {
				t.Errorf("Keep() = %v", err)
			}
			for _, keys := range []string{"a1", "b1 d1", "c1 d1"} {
				if e := refusedForKey(t, l, keys); e.Remaining != time.Minute {
					t.Errorf("%s: remaining %v of what is kept for 1m", keys, e.Remaining)
				}
			}
			time.Sleep(time.Minute)
		}, lock.ErrNotHeld},
		{"force unlock of what is kept", func(t *testing.T, l *Locker, h lock.Hold) {
			if err := h.(keeper).Keep(t.Context(), time.Hour); err != nil || !l.ForceUnlock("b") {
				t.Errorf("Keep() = %v, or ForceUnlock of what is kept = false", err)
			}
		}, lock.ErrNotHeld},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, l *Locker) {
				r := levels("a1 b1 c1", 0)
				r.Lease, r.MaxHold = 2*time.Minute, time.Minute
				h := get(t, t.Context(), l, r)
				tt.end(t, l, h)
				synctest.Wait()
				release(t, get(t, t.Context(), l, levels("c1 b1 a1", 0)))
				if err := h.Release(t.Context()); !errors.Is(err, tt.want) {
					t.Errorf("Release() = %v, want %v", err, tt.want)
				}
			})
		})
	}
}

// refusedFor checks that r is refused for that level or, without one, for its rate, and that Peek says so, too.
func refusedForKey(t *testing.T, l *Locker, keys string) lock.BusyError {
	t.Helper()
	_, err := l.Acquire(t.Context(), levels(keys, 0))
	busy, ok := errors.AsType[*lock.BusyError](err)
	if !ok {
		t.Fatalf("Acquire(%s) = %v, want a BusyError", keys, err)
	}
	return *busy
}

func TestOnlyTheFullLevelIsWaitedFor(t *testing.T) {
	bubble(t, func(t *testing.T, l *Locker) {
		n := line{t: t, l: l}
		h := get(t, t.Context(), l, levels("a2 b1", 0))
		n.wait("waits for b", levels("a2 b1", 0), 0)
		release(t, get(t, t.Context(), l, levels("a2 c1", 0))) // the waiter has no slot of a, and is not ahead
		_, err := l.Acquire(t.Context(), levels("a2 b1", time.Second))
		if busy, ok := errors.AsType[*lock.BusyError](err); !ok || busy.Level != "b" || busy.Waited != time.Second {
			t.Errorf("Acquire() = %v, want busy for b after 1s", err)
		}
		full(t, t.Context(), l, "c1 b9", "b") // a newcomer that would fit is behind who waits
		release(t, h)
		n.wg.Wait()
		n.order("waits for b")
	})
}

// The first in one line finds another level full, and waits for that one. The next one is not held up.
func TestWaiterMovesOn(t *testing.T) {
	bubble(t, func(t *testing.T, l *Locker) {
		n := line{t: t, l: l}
		a, b := get(t, t.Context(), l, levels("a1", 0)), get(t, t.Context(), l, levels("b1", 0))
		n.wait("both", levels("a1 b1", 0), time.Second)
		n.wait("a", levels("a1", 0), time.Minute)
		n.wait("b", levels("b1", 0), time.Hour)
		n.order()
		release(t, a)
		n.order("a")
		release(t, b) // a is full again, so that both waits there
		n.order("a", "b")
		time.Sleep(time.Minute)
		n.order("a", "b") // and now for b
		time.Sleep(time.Hour)
		n.order("a", "b", "both")
		n.wg.Wait()
	})
}

// Those who wait for one level are not passed by those who came later and waited for another one.
func TestWhoCameFirstIsAhead(t *testing.T) {
	bubble(t, func(t *testing.T, l *Locker) {
		n := line{t: t, l: l}
		h := get(t, t.Context(), l, levels("a1 b1", 0))
		n.wait("b", levels("b1", 0), time.Second)
		for i := range 3 {
			n.wait(fmt.Sprint("both", i), levels("a1 b1", 0), time.Second)
		}
		n.wait("last", levels("b1", 0), time.Second)
		release(t, h)
		n.wg.Wait()
		n.order("b", "both0", "both1", "both2", "last")
	})
}

// The first in line stays there while the level is full, also if another one is full by now.
func TestWaiterStays(t *testing.T) {
	bubble(t, func(t *testing.T, l *Locker) {
		n := line{t: t, l: l}
		a := get(t, t.Context(), l, levels("a1", 0))
		n.wait("both", levels("b1 a1", 0), 0)
		b := get(t, t.Context(), l, levels("b1", 0))
		if _, err := l.Acquire(t.Context(), levels("a1", time.Second)); !errors.Is(err, lock.ErrBusy) { // has the line looked at as it leaves
			t.Errorf("Acquire() = %v, want busy", err)
		}
		full(t, t.Context(), l, "c1 a9", "a")
		release(t, a)
		full(t, t.Context(), l, "c1 b9", "b") // where it waits now
		release(t, b)
		n.order("both")
		n.wg.Wait()
	})
}

// Who gives up, or goes away, lets those behind it have their turn.
func TestLeavingALevel(t *testing.T) {
	bubble(t, func(t *testing.T, l *Locker) {
		n := line{t: t, l: l}
		h := get(t, t.Context(), l, levels("a2 b1", 0))
		ctx, cancel := context.WithCancelCause(t.Context())
		n.wg.Go(func() {
			if _, err := l.Acquire(ctx, levels("a1 c1", -1)); !errors.Is(err, errOwn) {
				t.Errorf("Acquire() = %v, want %v", err, errOwn)
			}
		})
		synctest.Wait()
		n.wait("behind", levels("a2 c1", 0), time.Second)
		n.order()
		cancel(errOwn)
		n.order("behind")
		n.wg.Wait()
		release(t, h)
	})
}

func TestReentryOfLevels(t *testing.T) {
	for _, tt := range []struct{ held, wanted, taken string }{
		{"a1 b1", "a1 b1", ""},
		{"a1 b1", "b1 a1", ""},
		{"a1 b1", "b1", ""},
		{"a1 b1", "a1", ""},
		{"a1 b1", "a1 b1 c1", "c"},
		{"a1 b1", "c1 b1", "c"},
		{"a1", "a1 b1 c1", "bc"},
	} {
		t.Run(tt.held+" then "+tt.wanted, func(t *testing.T) {
			bubble(t, func(t *testing.T, l *Locker) {
				outer := get(t, t.Context(), l, levels(tt.held, 0))
				if err := l.Peek(outer.Context(), levels(tt.wanted, 0)); err != nil {
					t.Errorf("Peek() = %v", err)
				}
				ctx := context.WithoutCancel(outer.Context())
				inner := get(t, ctx, l, levels(tt.wanted, -1))
				for _, key := range tt.taken {
					full(t, t.Context(), l, "z1 "+string(key)+"1", string(key))
				}
				release(t, outer)
				for k := range strings.FieldsSeq(tt.wanted) { // the inner hold has all of it still
					full(t, ctx, l, "z1 "+k, k[:1])
				}
				release(t, inner)
				if len(l.keys) != 0 {
					t.Errorf("%d keys are held", len(l.keys))
				}
			})
		})
	}
}

// A call is the newest of its Key, unless it re-enters that.
func TestReplaceGoesByTheKey(t *testing.T) {
	bubble(t, func(t *testing.T, l *Locker) {
		h := get(t, t.Context(), l, levels("a1 b1", 0))
		for _, tt := range []struct {
			r        lock.Request
			reenters bool
		}{{levels("a1 c1", 0), true}, {levels("b1", 0), true}, {levels("c1 b1", 0), false}, {rated(0, 1, time.Hour), false}} {
			turn, leave, err := l.Replace(h.Context(), tt.r)
			if err != nil || (turn == h.Context()) != tt.reenters {
				t.Errorf("Replace(%+v) re-enters: %v, %v", tt.r, turn == h.Context(), err)
			}
			leave()
		}
		release(t, h)
	})
}

// A call that waits for a level while its ancestor holds the rest goes on without it, if that is released meanwhile.
func TestAncestorIsReleasedMeanwhile(t *testing.T) {
	bubble(t, func(t *testing.T, l *Locker) {
		n := line{t: t, l: l}
		outer, other := get(t, t.Context(), l, levels("a1", 0)), get(t, t.Context(), l, levels("b1", 0))
		n.waitUnder(context.WithoutCancel(outer.Context()), "nested", levels("a1 b1", 0), 0)
		release(t, outer)
		stranger := get(t, t.Context(), l, levels("a1", 0))
		release(t, other)
		n.order()
		full(t, t.Context(), l, "b1 a1", "a") // which is waited for now
		release(t, stranger)
		n.order("nested")
		n.wg.Wait()
	})
}

// A level is of the family of permits: beside others, it can't be had, and those who have waited for something else hear of it.
func TestLevelOfAnotherFamily(t *testing.T) {
	bubble(t, func(t *testing.T, l *Locker) {
		want := lock.KindError{Held: lock.Fair, Wanted: lock.Permit}
		refused := func(ctx context.Context, keys string) {
			t.Helper()
			_, err := l.Acquire(ctx, levels(keys, -1))
			if e, ok := errors.AsType[*lock.KindError](err); !ok || *e != want {
				t.Errorf("Acquire(%s) = %v, want %v", keys, err, &want)
			}
		}
		permit := get(t, t.Context(), l, levels("a1", 0))
		var wg sync.WaitGroup
		wg.Go(func() { refused(t.Context(), "a1 b1") })
		synctest.Wait()
		fair := get(t, t.Context(), l, lock.Request{Key: "b", Kind: lock.Fair})
		refused(t.Context(), "c1 b1")
		refused(fair.Context(), "c1 b1")
		if _, err := l.Acquire(t.Context(), lock.Request{Key: "a", Wait: -1}); !errors.Is(err, lock.ErrUnsupported) {
			t.Errorf("Acquire() = %v, want ErrUnsupported", err)
		}
		release(t, permit)
		wg.Wait()
		release(t, fair)
	})
}
