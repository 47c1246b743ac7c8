package interop

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/redisson"
)

// syncScenarios are those of what is not a lock.
var syncScenarios = []scenario{
	{name: "44_semaphore", play: semaphore, long: true},
	{name: "44_semaphore_changes", play: semaphoreChanges, long: true},
	{name: "44_deleted_semaphores", play: deletedSemaphores},
	{name: "45_permit_expires", play: permitExpires, long: true},
	{name: "45_permit_changes_hands", play: permitChangesHands},
	{name: "45_permit_as_a_lock", play: permitAsLock},
	{name: "45_permits_at_once", play: permitsAtOnce},
	{name: "45_permits_at_once_waiting", play: permitsAtOnceWaiting},
	{name: "46_count_down", play: func(t *testing.T, on setting) { latchBothWays(newWorld(t, on).latches()) }, long: true},
	{name: "46_deleted_latch", play: deletedLatch, long: true},
	{name: "rate_limiter", play: rates, long: true},
	{name: "rate_limiter_of_each_client", play: ratesOfClients},
	{name: "rate_limiter_release", play: rateReleases},
	{name: "rate_limiter_update", play: rateUpdates},
	{name: "rate_limiter_reset", play: rateResets},
	{name: "rate_limiter_lowered", play: rateLowered},
	{name: "rate_limiter_refusals", play: rateRefusals},
}

// object is an object of Redisson's, with what Go has of the same name.
type object struct {
	*javaMutex // for its calls
	w          *world
}

func (w *world) object(getter, name string) object {
	return object{newJavaMutex(w.t, w.java, step{getter, name}), w}
}

// begin calls a method in a thread of its own, and returns when it is seen to wait.
func (o object) begin(channel, method string, args ...any) *pending {
	o.w.t.Helper()
	return o.w.beginAt(channel, "Java: "+method, func() result {
		r := o.call(method, method, args...).result()
		r.ok = r.err == nil
		return r
	})
}

// timed is the result of a Go operation that succeeds without an error.
func timed(op func() error) result {
	r := result{start: time.Now()}
	r.err = op()
	r.ok, r.end = r.err == nil, time.Now()
	return r
}

// do does something that works.
func (w *world) do(op func() error) result {
	w.t.Helper()
	r := timed(op)
	if r.err != nil {
		w.t.Fatal(r.err)
	}
	return r
}

const semaphoreMessages = "redisson_sc:{k}"

func semaphore(t *testing.T, on setting) {
	w := newWorld(t, on)
	ctx, java, golang := t.Context(), w.object("getSemaphore", "k"), w.client.Semaphore("k")
	free := func(want int) {
		t.Helper()
		if j, g := java.get("", "availablePermits"), must[int](t)(golang.AvailablePermits(ctx)); j != float64(want) || g != want {
			t.Errorf("available: Java %v, Go %d; want %d", j, g, want)
		}
	}
	messages := w.messages(semaphoreMessages)
	free(0)
	java.get("", "trySetPermits", 2)
	messages.expect("2")
	w.do(func() error { return golang.Acquire(ctx, 2) })
	if ok := must[bool](t)(golang.TrySetPermits(ctx, 5)); ok {
		t.Error("TrySetPermits of a semaphore that exists = true")
	}
	messages.expect()
	w.wakes(func() (released, woken result) {
		p := java.begin(semaphoreMessages, "acquire", 2)
		w.do(func() error { return golang.Release(ctx, 1) })
		p.waits(200 * time.Millisecond)
		free(1)
		released = w.do(func() error { return golang.Release(ctx, 1) })
		woken = p.gets()
		free(0)
		messages.expect("1", "2")
		return released, woken
	})
	w.wakes(func() (released, woken result) {
		p := w.beginAt(semaphoreMessages, "Go: Acquire", func() result {
			return timed(func() error { return golang.Acquire(ctx, 2) })
		})
		java.get("", "release")
		p.waits(200 * time.Millisecond)
		free(1)
		released = java.call("", "release", 1).result()
		woken = p.gets()
		free(0)
		messages.expect("1", "2")
		return released, woken
	})
	if java.get("", "tryAcquire", 1, 500, "MILLISECONDS") != false || must[bool](t)(golang.TryAcquire(ctx, 1, 500*time.Millisecond)) {
		t.Error("there is a permit too many")
	}
	messages.close()
	w.rdb.Del(ctx, "k")
	w.clean()
}

// semaphoreChanges: all that changes the permits does the same and says the same on both sides, but that Go notifies nobody
// of a number below zero, which ends the subscriptions of Redisson.
func semaphoreChanges(t *testing.T, on setting) {
	w := newWorld(t, on)
	ctx, java, golang := t.Context(), w.object("getSemaphore", "k"), w.client.Semaphore("k")
	messages := w.messages(semaphoreMessages)
	for _, tt := range []struct {
		method   string
		args     []any
		inGo     func() (any, error)
		value    any // of both
		permits  string
		messages string // of Java
		own      string // of Go, if not the same
	}{
		{"releaseIfExists", []any{1}, func() (any, error) { return golang.ReleaseIfExists(ctx, 1) }, nil, "", "", ""},
		{"trySetPermits", []any{3}, func() (any, error) { return golang.TrySetPermits(ctx, 3) }, true, "3", "3", ""},
		{"trySetPermits", []any{4}, func() (any, error) { return golang.TrySetPermits(ctx, 4) }, false, "3", "", ""},
		{"addPermits", []any{2}, func() (any, error) { return nil, golang.AddPermits(ctx, 2) }, nil, "5", "5", ""},
		{"addPermits", []any{-7}, func() (any, error) { return nil, golang.AddPermits(ctx, -7) }, nil, "-2", "-2", "0"},
		{"release", []any{3}, func() (any, error) { return nil, golang.Release(ctx, 3) }, nil, "1", "1", ""},
		{"releaseIfExists", []any{2}, func() (any, error) { return golang.ReleaseIfExists(ctx, 2) }, nil, "3", "3", ""},
		{"drainPermits", nil, func() (any, error) { return golang.DrainPermits(ctx) }, 3, "0", "", ""},
	} {
		before := w.rdb.Get(ctx, "k").Val()
		check := func(side string, value any, said string) {
			t.Helper()
			if got := w.rdb.Get(ctx, "k").Val(); got != tt.permits || tt.value != nil && fmt.Sprint(value) != fmt.Sprint(tt.value) {
				t.Errorf("%s: %s%v = %v and leaves %q; want %v, %q", side, tt.method, tt.args, value, got, tt.value, tt.permits)
			}
			messages.expect(strings.Fields(said)...)
		}
		check("Java", java.get("", tt.method, tt.args...), tt.messages)
		w.rdb.Del(ctx, "k")
		if before != "" {
			w.rdb.Set(ctx, "k", before, 0)
		}
		value := must[any](t)(tt.inGo())
		if tt.own != "" {
			tt.messages = tt.own
		}
		check("Go", value, tt.messages)
	}
}

// latches is a latch seen from both sides.
type latches struct {
	w      *world
	java   object
	golang *redisson.CountDownLatch
}

func (w *world) latches() latches {
	return latches{w, w.object("getCountDownLatch", "k"), w.client.CountDownLatch("k")}
}

const latchChannel = "redisson_countdownlatch__channel__{k}"

func (l latches) counts(want int64) {
	l.w.t.Helper()
	if j, g := l.java.get("", "getCount"), must[int64](l.w.t)(l.golang.Count(l.w.t.Context())); j != float64(want) || g != want {
		l.w.t.Errorf("count: Java %v, Go %d; want %d", j, g, want)
	}
}

func (l latches) goAwaits() *pending {
	l.w.t.Helper()
	return l.w.beginAt(latchChannel, "Go: Await", func() result {
		return timed(func() error { return l.golang.Await(l.w.t.Context()) })
	})
}

func latchBothWays(l latches) {
	w, ctx := l.w, l.w.t.Context()
	messages := w.messages(latchChannel)
	w.wakes(func() (released, woken result) {
		l.java.get("", "trySetCount", 2)
		l.counts(2)
		p := l.java.begin(latchChannel, "await")
		w.do(func() error { return l.golang.CountDown(ctx) })
		p.waits(200 * time.Millisecond)
		l.counts(1)
		released = w.do(func() error { return l.golang.CountDown(ctx) })
		woken = p.gets()
		messages.expect("1", "0")
		return released, woken
	})
	w.wakes(func() (released, woken result) {
		if ok := must[bool](w.t)(l.golang.TrySetCount(ctx, 2)); !ok {
			w.t.Error("TrySetCount = false")
		}
		l.counts(2)
		p := l.goAwaits()
		l.java.get("", "countDown")
		p.waits(200 * time.Millisecond)
		l.counts(1)
		released = l.java.call("", "countDown").result()
		woken = p.gets()
		messages.expect("1", "0")
		return released, woken
	})
	l.counts(0)
	l.java.get("", "await")
	w.do(func() error { return l.golang.Await(ctx) })
	for _, set := range []any{l.java.get("", "trySetCount", 1), l.java.get("", "trySetCount", 1), must[bool](w.t)(l.golang.TrySetCount(ctx, 1))} {
		messages.expect(map[any][]string{true: {"1"}}[set]...)
	}
	messages.close()
	w.rdb.Del(ctx, "k")
	w.clean()
}

// deletedLatch: nobody is notified that a latch was deleted, so Redisson waits on, until a new count has come to its end.
func deletedLatch(t *testing.T, on setting) {
	w := newWorld(t, on)
	w.client = w.newClient(redisson.WatchdogTimeout(6 * time.Second)) // so that Go looks every 2s
	l := w.latches()
	messages := w.messages(latchChannel)
	l.java.get("", "trySetCount", 1)
	messages.expect("1")
	java, golang := l.java.begin(latchChannel, "await"), l.goAwaits()
	deleted := w.do(func() error {
		ok, err := l.golang.Delete(t.Context())
		return errors.Join(err, map[bool]error{false: errors.New("Delete = false")}[ok])
	})
	messages.expect("1")
	w.between("Go notices after", golang.gets().end.Sub(deleted.start), 0, 2*time.Second+soon)
	java.waits(time.Second)
	if ok := l.java.get("", "delete"); ok != false {
		t.Errorf("delete of what is not there = %v", ok)
	}
	messages.expect()
	l.java.get("", "trySetCount", 1)
	w.do(func() error { return l.golang.CountDown(t.Context()) })
	messages.expect("1", "0")
	java.gets()
	messages.close()
	w.clean()
}

// rates: the two sides use up one number, and know when it is theirs again.
func rates(t *testing.T, on setting) {
	const interval = 6 * time.Second
	w := newWorld(t, on)
	ctx := t.Context()
	for _, byGo := range []bool{false, true} {
		name := fmt.Sprint("by Go ", byGo)
		java, golang := w.object("getRateLimiter", name), w.client.RateLimiter(name)
		free := func(want int64) {
			t.Helper()
			if j, g := java.get("", "availablePermits"), must[int64](t)(golang.AvailablePermits(ctx)); j != float64(want) || g != want {
				t.Errorf("available: Java %v, Go %d; want %d", j, g, want)
			}
		}
		if byGo {
			must[bool](t)(golang.TrySetRate(ctx, redisson.Rate{Permits: 5, Interval: interval}))
			free(5)
			if again := java.get("", "trySetRate", "OVERALL", 7, "PT1S"); again != false {
				t.Error("a rate is set twice")
			}
		} else {
			java.get("", "trySetRate", "OVERALL", 5, "PT6S")
			free(5)
			if must[bool](t)(golang.TrySetRate(ctx, redisson.Rate{Permits: 7, Interval: time.Second})) {
				t.Error("a rate is set twice")
			}
		}
		start := time.Now()
		w.do(func() error { return golang.Acquire(ctx, 2) })
		free(3)
		java.get("", "acquire", 2)
		free(1)
		if java.get("", "tryAcquire", 2) != false || must[bool](t)(golang.TryAcquire(ctx, 2, 0)) {
			t.Error("there is a permit too many")
		}
		if ok := must[bool](t)(golang.TryAcquire(ctx, 3, time.Minute)); !ok {
			t.Error("Go has not got 3 permits")
		}
		w.between("Go had to wait", time.Since(start), interval, interval+2*time.Second)
		if ok := java.get("", "tryAcquire", 2, 60, "SECONDS"); ok != true {
			t.Error("Java has not got 2 permits")
		}
		w.between("Java had to wait", time.Since(start), interval, interval+2*time.Second)
		free(0)

		// What was taken later comes back later: each side reads how much the other took.
		w.pass(interval + 100*time.Millisecond)
		taken := time.Now()
		java.get("", "acquire", 2)
		w.pass(interval / 2)
		w.do(func() error { return golang.Acquire(ctx, 1) })
		free(2)
		w.pass(time.Until(taken.Add(interval + 500*time.Millisecond)))
		free(4)
	}
}

// ratesOfClients: each client has as many, on either side.
func ratesOfClients(t *testing.T, on setting) {
	w := newWorld(t, on)
	java, golang := w.object("getRateLimiter", "k"), w.client.RateLimiter("k")
	ctx, others := t.Context(), w.newClient().RateLimiter("k")
	java.get("", "trySetRate", "PER_CLIENT", 2, "PT1M")
	for range 2 {
		java.get("", "acquire", 1)
		w.do(func() error { return golang.Acquire(ctx, 1) })
		w.do(func() error { return others.Acquire(ctx, 1) })
	}
	if java.get("", "tryAcquire", 1) != false || must[bool](t)(golang.TryAcquire(ctx, 1, 0)) || must[bool](t)(others.TryAcquire(ctx, 1, 0)) {
		t.Error("there is a permit too many")
	}
}
