package redisson_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson"
)

// levelled asks for a permit of user, with others of all.
func levelled(user string, limit int) lock.Request {
	return lock.Request{Key: "user:" + user, Kind: lock.Permit, Limit: 1, Levels: []lock.Level{{Key: "all", Limit: limit}}}
}

// checkFull fails t unless r is refused by that level.
func checkFull(t *testing.T, c *redisson.Client, r lock.Request, level string) {
	t.Helper()
	for what, ask := range map[string]func() error{
		"Acquire": func() error { _, err := c.Acquire(t.Context(), r); return err },
		"Peek":    func() error { return c.Peek(t.Context(), r) },
	} {
		busy, ok := errors.AsType[*lock.BusyError](ask())
		if !ok || busy.Level != level || busy.Rate {
			t.Errorf("%s: %+v, want that %s is full", what, busy, level)
		}
	}
}

// All levels are taken or none, and are free together.
func TestLevelsAreTakenTogether(t *testing.T) {
	t.Parallel()
	s := redistest.Any(t)
	rdb, c, other := s.Client(t), newClient(t, s), newClient(t, s)
	a := acquire(t.Context(), t, c, levelled("a", 2))
	checkFull(t, other, levelled("a", 2), "user:a")
	checkFull(t, c, levelled("b", 1), "all")
	b := acquire(t.Context(), t, other, levelled("b", 2))
	checkFull(t, c, levelled("c", 2), "all")
	if n := rdb.Exists(t.Context(), "user:c").Val(); n != 0 {
		t.Error("a call that was refused has left a semaphore")
	}
	third := acquire(t.Context(), t, c, levelled("c", 3)) // each goes by its own number
	nested := acquire(a.Context(), t, c, lock.Request{Key: "all", Kind: lock.Permit, Limit: 1})
	under := acquire(a.Context(), t, c, levelled("d", 1))
	alone := acquire(t.Context(), t, c, lock.Request{Key: "user:e", Kind: lock.Permit, Limit: 1})
	release(t, acquire(alone.Context(), t, c, levelled("e", 4)))
	release(t, alone)
	for _, h := range []lock.Hold{under, nested, a, b, third} {
		release(t, h)
	}
	if left := keys(t, rdb); len(left) != 0 {
		t.Errorf("keys %q are left", left)
	}
}

// Who waits for a full level holds up nobody who needs others, and holds no permit of another level.
func TestWaitersOfALevelHoldUpNobody(t *testing.T) {
	t.Parallel()
	s := redistest.Any(t)
	c, other := newClient(t, s), newClient(t, s)
	a := acquire(t.Context(), t, c, levelled("a", 2))
	got := make(chan lock.Hold)
	for range 2 {
		go func() {
			r := levelled("a", 2)
			r.Wait = waits
			h, err := other.Acquire(t.Context(), r)
			if err != nil {
				t.Error(err)
			}
			got <- h
		}()
	}
	<-time.After(200 * time.Millisecond)
	b := acquire(t.Context(), t, other, levelled("b", 2)) // neither by those of a, nor by what they hold
	start := time.Now()
	release(t, a) // the next of a finds that both levels have room
	h := <-got
	checkFull(t, c, levelled("c", 2), "all")
	release(t, b)
	release(t, h)
	release(t, <-got)
	if took := ran(start); took > waits/4 {
		t.Errorf("took %v", took)
	}
}

// A waiter whose level has room, and another one has not, goes to wait for that.
func TestAWaiterMovesToTheFullLevel(t *testing.T) {
	t.Parallel()
	s := redistest.Any(t)
	c, other := newClient(t, s), newClient(t, s)
	a := acquire(t.Context(), t, c, levelled("a", 2))
	b := acquire(t.Context(), t, c, levelled("b", 2))
	got := make(chan lock.Hold, 2)
	wait := func(user string) {
		r := levelled(user, 2)
		r.Wait = waits
		h, err := other.Acquire(t.Context(), r)
		if err != nil {
			t.Error(err)
		}
		got <- h
	}
	go wait("a") // is refused by its user
	<-time.After(100 * time.Millisecond)
	x := acquire(t.Context(), t, c, levelled("x", 3))
	release(t, a) // which leaves two of all
	<-time.After(100 * time.Millisecond)
	checkFull(t, c, levelled("y", 2), "all")
	select {
	case <-got:
		t.Error("three are inside")
	default:
	}
	start := time.Now()
	release(t, x)
	h := <-got
	if took := ran(start); took > time.Second {
		t.Errorf("woken after %v", took)
	}
	release(t, h)
	release(t, b)
}

// However many callers name their levels in whatever order, no limit is exceeded, and all get their turns.
func TestLevelsInAnyOrder(t *testing.T) {
	t.Parallel()
	s := redistest.Any(t)
	var mu sync.Mutex
	inside, most := map[string]int{}, map[string]int{"p": 1, "q": 2, "r": 3}
	var all sync.WaitGroup
	for i := range 12 {
		c := newClient(t, s)
		order := [][]string{{"p", "q", "r"}, {"r", "q", "p"}, {"q", "r"}, {"r", "p"}}[i%4]
		all.Go(func() {
			for range 10 {
				r := lock.Request{Key: order[0], Kind: lock.Permit, Limit: most[order[0]], Wait: waits}
				for _, key := range order[1:] {
					r.Levels = append(r.Levels, lock.Level{Key: key, Limit: most[key]})
				}
				h, err := c.Acquire(t.Context(), r)
				if err != nil {
					t.Errorf("%v: %v", order, err)
					return
				}
				count := func(by int) {
					mu.Lock()
					defer mu.Unlock()
					for _, key := range order {
						if inside[key] += by; inside[key] > most[key] {
							t.Errorf("%d are inside of %s", inside[key], key)
						}
					}
				}
				count(1)
				<-time.After(time.Millisecond)
				count(-1)
				if err := h.Release(context.WithoutCancel(t.Context())); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if left := keys(t, s.Client(t)); len(left) != 0 {
		t.Errorf("keys %q are left", left)
	}
}

// In a cluster, levels share a hash tag, and are refused otherwise: where their templates show it, at start.
func testClusterLevels(t *testing.T, c *redistest.Cluster) {
	first, other := member(t, c), member(t, c)
	r := lock.Request{Key: "user:{x}:1", Kind: lock.Permit, Limit: 1, Levels: []lock.Level{{Key: "all:{x}", Limit: 2}}, Rate: lock.Rate{Permits: 3, Interval: time.Minute}}
	h := acquire(t.Context(), t, first, r)
	checkFull(t, other, r, "user:{x}:1")
	release(t, h)
	release(t, acquire(t.Context(), t, other, r))
	r.Levels[0].Key = "all:{y}"
	if _, err := first.Acquire(t.Context(), r); !errors.Is(err, lock.ErrUnsupported) {
		t.Errorf("levels in two slots: %v", err)
	}
	if err := first.Peek(t.Context(), r); !errors.Is(err, lock.ErrUnsupported) {
		t.Errorf("Peek of levels in two slots: %v", err)
	}
	for _, tt := range []struct {
		keys []string
		ok   bool
	}{
		{[]string{"all"}, true},
		{[]string{"user:{#{req.Tenant}}:#{req.User}", "tenant:{#{req.Tenant}}"}, true},
		{[]string{"{a}#{req.User}", "{a}", "x{a}y"}, true},
		{[]string{"user:#{req.User}", "all"}, false},
		{[]string{"{a}:#{req.User}", "{a}", "{b}"}, false},
		{[]string{"{#{req.Tenant}}", "{#{req.User}}"}, false},
		{[]string{"{}a", "{}b"}, false},
	} {
		if err := first.ServesLevels(tt.keys...); (err == nil) != tt.ok || err != nil && !errors.Is(err, lock.ErrUnsupported) {
			t.Errorf("ServesLevels of %q: %v", tt.keys, err)
		}
	}
}

// A call takes the levels that no hold above it has, whether that has its key or another level.
func TestLevelsUnderAHold(t *testing.T) {
	t.Parallel()
	s := redistest.Any(t)
	c, other := newClient(t, s), newClient(t, s)
	a := acquire(t.Context(), t, c, lock.Request{Key: "user:a", Kind: lock.Permit, Limit: 1})
	under := acquire(a.Context(), t, c, levelled("a", 1))
	checkFull(t, other, levelled("b", 1), "all")
	d := acquire(t.Context(), t, other, lock.Request{Key: "user:d", Kind: lock.Permit, Limit: 1})
	_, err := c.Acquire(under.Context(), levelled("d", 1))
	if busy, ok := errors.AsType[*lock.BusyError](err); !ok || busy.Level != "user:d" {
		t.Errorf("under a hold of the level: %v, %+v", err, busy)
	}
	release(t, d)
	release(t, a) // what was re-entered lasts for as long as who did
	checkFull(t, other, levelled("a", 2), "user:a")
	release(t, under)
	a = acquire(t.Context(), t, c, lock.Request{Key: "user:a", Kind: lock.Permit, Limit: 1})
	b := acquire(t.Context(), t, other, levelled("b", 1))
	expectHeldByOthers(a.Context(), t, "under a hold of the key, with a full level", c, levelled("a", 1))
	check(t, c.ReleaseAll(t.Context(), []lock.Hold{acquire(a.Context(), t, c, levelled("a", 2)), a}))
	release(t, b)
	if left := keys(t, s.Client(t)); len(left) != 0 {
		t.Errorf("keys %q are left", left)
	}
}

// Redis is not ready for a moment. A call under a hold of one of its levels waits for that as any other does.
func TestLevelsUnderAHoldStayForRedis(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	admin, c := s.Client(t), newClient(t, s)
	outer := acquire(t.Context(), t, c, levelled("a", 2))
	for what, r := range map[string]lock.Request{"all of them": levelled("a", 2), "one of them": levelled("b", 2)} {
		check(t, admin.ConfigSet(t.Context(), "min-replicas-to-write", "1").Err())
		time.AfterFunc(time.Second, func() { admin.ConfigSet(context.Background(), "min-replicas-to-write", "0") })
		r.Wait = 3 * time.Second
		h, err := c.Acquire(outer.Context(), r)
		if err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		release(t, h)
	}
	release(t, outer)
}
