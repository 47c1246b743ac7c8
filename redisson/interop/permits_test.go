package interop

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson"
)

// permits is an expirable semaphore seen from both sides.
type permits struct {
	w      *world
	java   object
	golang *redisson.PermitExpirableSemaphore
}

func newPermits(w *world, n int) permits {
	p := permits{w, w.object("getPermitExpirableSemaphore", "k"), w.client.PermitExpirableSemaphore("k")}
	p.java.get("", "trySetPermits", n)
	p.count(n, 0)
	return p
}

// count expects so many free and taken permits on both sides.
func (p permits) count(free, taken int) {
	p.w.t.Helper()
	ctx := p.w.t.Context()
	for _, tt := range []struct {
		method string
		inGo   func(context.Context) (int, error)
		want   int
	}{
		{"availablePermits", p.golang.AvailablePermits, free},
		{"acquiredPermits", p.golang.AcquiredPermits, taken},
		{"getPermits", p.golang.Permits, free + taken},
	} {
		if j, g := p.java.get("", tt.method), must[int](p.w.t)(tt.inGo(ctx)); j != float64(tt.want) || g != tt.want {
			p.w.t.Errorf("%s: Java %v, Go %d; want %d", tt.method, j, g, tt.want)
		}
	}
}

// javaReleases expects a late release to fail, or another one to work.
func (p permits) javaReleases(id any, late bool) {
	p.w.t.Helper()
	err := p.java.call("", "release", id).err()
	if late != (err != nil && strings.Contains(err.Error(), "java.lang.IllegalArgumentException")) || !late && err != nil {
		p.w.t.Errorf("Java releases %v, late: %v; %v", id, late, err)
	}
}

func (p permits) goReleases(id any, late bool) {
	p.w.t.Helper()
	if err := p.golang.Release(p.w.t.Context(), id.(string)); late != errors.Is(err, lock.ErrNotHeld) || !late && err != nil {
		p.w.t.Errorf("Go releases %v, late: %v; %v", id, late, err)
	}
}

// permitExpires: nobody says that a permit of 3s is free, so it is had when its lease is over.
func permitExpires(t *testing.T, on setting) {
	w := newWorld(t, on)
	p := newPermits(w, 1)
	ctx := t.Context()

	taken := time.Now() // before the question: on a busy machine, the answer may take a while
	expired := p.java.get("", "acquire", 3, "SECONDS")
	p.count(0, 1)
	var id any
	got := w.beginAt(semaphoreMessages, "Go: Acquire", func() result {
		return timed(func() (err error) { id, err = p.golang.Acquire(ctx, 20*time.Second); return err })
	}).gets()
	w.between("Go acquires after", got.end.Sub(taken), 2900*time.Millisecond, 3*time.Second+soon)
	p.count(0, 1)
	p.javaReleases(expired, true)
	p.count(0, 1)
	p.goReleases(id, false)
	p.goReleases(id, true)
	p.count(1, 0)

	taken = time.Now()
	late := must[string](t)(p.golang.Acquire(ctx, 3*time.Second))
	p.count(0, 1)
	waits := p.java.begin(semaphoreMessages, "acquire", 20, "SECONDS")
	w.between("Java acquires after", waits.gets().end.Sub(taken), 2900*time.Millisecond, 3*time.Second+soon)
	p.goReleases(late, true)
	p.count(0, 1)
}

// permitChangesHands: the text of a permit is all that one side needs to know of what the other took.
func permitChangesHands(t *testing.T, on setting) {
	w := newWorld(t, on)
	p := newPermits(w, 2)
	ctx, messages := t.Context(), w.messages(semaphoreMessages)
	byGo := must[string](t)(p.golang.Acquire(ctx, 0))
	byJava := p.java.get("", "acquire")
	p.count(0, 2)
	if len(byGo) != 32 || len(byJava.(string)) != 32 {
		t.Errorf("ids %q and %q, want 32 digits", byGo, byJava)
	}
	for _, member := range w.rdb.ZRange(ctx, "{k}:timeout", 0, -1).Val() {
		if id := fmt.Sprintf("%x", member); id != byGo && id != byJava {
			t.Errorf("%s is in Redis, of nobody", id)
		}
	}
	p.javaReleases(byGo, false)
	messages.expect("1")
	p.goReleases(byJava, false)
	messages.expect("2")
	p.count(2, 0)
	p.javaReleases(byGo, true)
	p.goReleases(byJava, true)
	messages.expect()

	// Leases are seen and changed by both.
	byGo = must[string](t)(p.golang.Acquire(ctx, 10*time.Second))
	if left := p.java.get("", "getLeaseTime", byGo).(float64); left <= 9000 || left > 10000 {
		t.Errorf("getLeaseTime = %v ms of 10s", left)
	}
	if ok := p.java.get("", "updateLeaseTime", byGo, 30, "SECONDS"); ok != true {
		t.Errorf("updateLeaseTime = %v, want true", ok)
	}
	w.between("LeaseTime", must[time.Duration](t)(p.golang.LeaseTime(ctx, byGo)), 25*time.Second, 30*time.Second)
	w.do(func() error { return p.golang.UpdateLease(ctx, byGo, 0) })
	if left := p.java.get("", "getLeaseTime", byGo); left != -1.0 {
		t.Errorf("getLeaseTime without an end = %v, want -1", left)
	}
	p.goReleases(byGo, false)
	messages.expect("2")

	// So are the permits.
	w.do(func() error { return p.golang.SetPermits(ctx, 5) })
	messages.expect("5")
	p.count(5, 0)
	p.java.get("", "addPermits", 1)
	p.count(6, 0)
	w.do(func() error { return p.golang.AddPermits(ctx, -2) })
	p.java.get("", "setPermits", 3)
	p.count(3, 0)
	messages.close()
}

// permitAsLock: the kind Permit of Acquire is served by the same data, and so shares what Java has set up.
func permitAsLock(t *testing.T, on setting) {
	w := newWorld(t, on)
	p := newPermits(w, 2)
	take := func(wait time.Duration) (lock.Hold, error) {
		return w.client.Acquire(t.Context(), lock.Request{Key: "k", Kind: lock.Permit, Limit: 2, Wait: wait})
	}
	first, second := must[lock.Hold](t)(take(0)), must[lock.Hold](t)(take(0))
	p.count(0, 2)
	if _, err := take(0); !errors.Is(err, lock.ErrBusy) {
		t.Errorf("a third of two permits: %v, want ErrBusy", err)
	}
	if id := p.java.get("", "tryAcquire"); id != nil {
		t.Errorf("tryAcquire of a third of two permits = %v", id)
	}

	var id any
	waits := w.beginAt(semaphoreMessages, "Java: acquire", func() result {
		a := p.java.call("a", "acquire", 20, "SECONDS")
		id = a.Value
		r := a.result()
		r.ok = r.err == nil
		return r
	})
	released := w.do(func() error { return first.Release(t.Context()) })
	w.between("Java has it after", waits.gets().end.Sub(released.start), 0, soon)
	p.count(0, 2)

	var third lock.Hold
	waits = w.beginAt(semaphoreMessages, "Go: Acquire", func() result {
		return timed(func() (err error) { third, err = take(-1); return err })
	})
	start := time.Now()
	p.javaReleases(id, false)
	w.between("Go has it after", waits.gets().end.Sub(start), 0, soon)
	w.do(func() error { return second.Release(t.Context()) })
	w.do(func() error { return third.Release(t.Context()) })
	p.count(2, 0)
}
