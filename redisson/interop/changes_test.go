package interop

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson"
)

// Permits in numbers, rates that change, and what is deleted.

// list is an argument for Java.
func list(ids []string) any { return map[string]any{"list": ids} }

// texts is a list that Java has answered.
func texts(tb testing.TB, value any) (all []string) {
	tb.Helper()
	values, ok := value.([]any)
	if !ok {
		tb.Fatalf("%v is no list", value)
	}
	for _, v := range values {
		all = append(all, v.(string))
	}
	return all
}

// permitsAtOnce: several permits go together, whoever took them and whoever gives them back.
func permitsAtOnce(t *testing.T, on setting) {
	w := newWorld(t, on)
	p := newPermits(w, 5)
	ctx, messages := t.Context(), w.messages(semaphoreMessages)
	byGo := must[[]string](t)(p.golang.AcquireN(ctx, 3, 20*time.Second))
	byJava := texts(t, p.java.get("", "acquire", 2, 20, "SECONDS"))
	p.count(0, 5)
	if len(byGo) != 3 || len(byJava) != 2 {
		t.Errorf("Go has %q and Java %q", byGo, byJava)
	}
	messages.expect()
	if n := p.java.get("", "tryRelease", list(slices.Concat(byGo[:2], []string{strings.Repeat("0", 32)}))); n != 0.0 {
		t.Errorf("Java gives back %v with one that never was", n)
	}
	if err := p.golang.Release(ctx, append(byJava, strings.Repeat("0", 32))...); !errors.Is(err, lock.ErrNotHeld) {
		t.Errorf("Go gives back with one that never was: %v", err)
	}
	p.count(0, 5)
	messages.expect()
	p.java.get("", "release", list(byGo))
	messages.expect("3")
	p.count(3, 2)
	if ids := texts(t, p.java.get("", "tryAcquire", 4)); len(ids) != 0 {
		t.Errorf("Java has got %q", ids)
	}
	if ids, ok, err := p.golang.TryAcquireN(ctx, 4, 0, 0); ok || err != nil {
		t.Errorf("Go has got %q, %v", ids, err)
	}
	w.do(func() error { return p.golang.Release(ctx, byJava...) })
	messages.expect("2")
	p.count(5, 0)
	if err := p.java.call("", "release", list(byGo)).err(); err == nil || !strings.Contains(err.Error(), "IllegalArgumentException") {
		t.Errorf("Java gives back a second time: %v", err)
	}
	if err := p.golang.Release(ctx, byGo...); !errors.Is(err, lock.ErrNotHeld) {
		t.Errorf("Go gives back a second time: %v", err)
	}
	messages.expect()
	one := must[string](t)(p.golang.Acquire(ctx, 0))
	if err := p.golang.Release(ctx, one, one); !errors.Is(err, lock.ErrNotHeld) {
		t.Errorf("Go gives a permit back twice at once: %v", err)
	}
	p.count(4, 1)
	if n := p.java.get("", "tryRelease", list([]string{one, one})); n != 1.0 {
		t.Errorf("Java gives back %v of a permit that is named twice, want 1", n)
	}
	messages.expect("1")
	p.count(5, 0)
	messages.close()
}

// permitsAtOnceWaiting: whoever waits for three is served when three are free, and one who wants fewer does not wait behind.
func permitsAtOnceWaiting(t *testing.T, on setting) {
	w := newWorld(t, on)
	p := newPermits(w, 3)
	ctx := t.Context()
	one := must[string](t)(p.golang.Acquire(ctx, 0))
	var ids []string
	golang := w.beginAt(semaphoreMessages, "Go: AcquireN", func() result {
		return timed(func() (err error) { ids, err = p.golang.AcquireN(ctx, 3, 0); return err })
	})
	two := texts(t, p.java.get("", "acquire", 2))
	p.java.get("", "release", list(two))
	golang.waits(200 * time.Millisecond)
	w.wakes(func() (released, woken result) {
		r := p.java.call("", "release", one).result()
		return r, golang.gets()
	})
	p.count(0, 3)
	java := p.java.begin(semaphoreMessages, "acquire", 3, 20, "SECONDS")
	w.do(func() error { return p.golang.Release(ctx, ids[0]) })
	java.waits(200 * time.Millisecond)
	w.wakes(func() (released, woken result) {
		r := w.do(func() error { return p.golang.Release(ctx, ids[1:]...) })
		return r, java.gets()
	})
	p.count(0, 3)
}

// deletedSemaphores: either side removes all that there is of a semaphore, without a message.
func deletedSemaphores(t *testing.T, on setting) {
	w := newWorld(t, on)
	ctx := t.Context()
	sem, permits := w.client.Semaphore("k"), w.client.PermitExpirableSemaphore("k")
	java, javaPermits := w.object("getSemaphore", "k"), w.object("getPermitExpirableSemaphore", "k")
	messages := w.messages(semaphoreMessages)
	for _, tt := range []struct {
		prepare func()
		remove  func() any
	}{
		{func() { must[bool](t)(sem.TrySetPermits(ctx, 2)) }, func() any { return java.get("", "delete") }},
		{func() { java.get("", "trySetPermits", 2) }, func() any { return must[bool](t)(sem.Delete(ctx)) }},
		{func() {
			must[bool](t)(permits.TrySetPermits(ctx, 2))
			must[string](t)(permits.Acquire(ctx, 0))
		}, func() any { return javaPermits.get("", "delete") }},
		{func() {
			javaPermits.get("", "trySetPermits", 2)
			javaPermits.get("", "acquire")
		}, func() any { return must[bool](t)(permits.Delete(ctx)) }},
	} {
		tt.prepare()
		messages.expect("2")
		if tt.remove() != true || tt.remove() != false {
			t.Error("delete does not report whether there was a semaphore")
		}
		if n := w.rdb.Exists(ctx, "k", "{k}:timeout").Val(); n != 0 {
			t.Errorf("%d keys are left", n)
		}
		messages.expect()
	}
	messages.close()
}

// limiter is a rate limiter seen from both sides.
type limiter struct {
	w      *world
	name   string
	java   object
	golang *redisson.RateLimiter
}

func (w *world) limiter(name string) limiter {
	return limiter{w, name, w.object("getRateLimiter", name), w.client.RateLimiter(name)}
}

// has expects both sides to have so many permits left, and so much to be in Redis.
func (l limiter) has(free int64, left string, taken ...uint32) {
	l.w.t.Helper()
	ctx := l.w.t.Context()
	if j, g := l.java.get("", "availablePermits"), must[int64](l.w.t)(l.golang.AvailablePermits(ctx)); j != float64(free) || g != free {
		l.w.t.Errorf("available: Java %v, Go %d; want %d", j, g, free)
	}
	var got []uint32
	for _, m := range l.w.rdb.ZRange(ctx, "{"+l.name+"}:permits", 0, -1).Val() {
		got = append(got, uint32(m[len(m)-4])|uint32(m[len(m)-3])<<8)
	}
	slices.Sort(got) // what both sides take within one millisecond is in an order of chance
	slices.Sort(taken)
	if v := l.w.rdb.Get(ctx, "{"+l.name+"}:value").Val(); v != left || !slices.Equal(got, taken) {
		l.w.t.Errorf("left %q, taken %v; want %q, %v", v, got, left, taken)
	}
}

// rateReleases: what is left is the same whoever gives back. Only Go takes it from what was taken as well, so that it does not
// come back a second time.
func rateReleases(t *testing.T, on setting) {
	w := newWorld(t, on)
	ctx := t.Context()
	l := w.limiter("k")
	l.java.get("", "trySetRate", "OVERALL", 10, "PT2S")
	l.java.get("", "acquire", 4)
	start := time.Now()
	w.do(func() error { return l.golang.Release(ctx, 1) })
	l.has(7, "7", 3)
	w.do(func() error { return l.golang.Acquire(ctx, 3) })
	w.do(func() error { return l.golang.Release(ctx, 5) })
	l.has(9, "9", 1)
	l.java.get("", "acquire", 9)
	l.has(0, "0", 1, 9)
	w.pass(2100*time.Millisecond - time.Since(start))
	w.pass(200 * time.Millisecond) // and what Java took
	l.has(10, "10")
	w.do(func() error { return l.golang.Release(ctx, 5) })
	l.has(10, "10")

	twice := w.limiter("twice")
	twice.java.get("", "trySetRate", "OVERALL", 2, "PT2S")
	twice.java.get("", "acquire", 2)
	w.pass(time.Second)
	twice.java.get("", "release", 2)
	twice.java.get("", "acquire", 2)
	w.pass(1200 * time.Millisecond)
	if ok := twice.java.get("", "tryAcquire", 2); ok != true { // 4 permits within 2s
		t.Error("Redisson no longer gives permits back twice: WIRE.md says that it does")
	}
}

// args are RateLimiterArgs for Java.
func args(kind string, permits int, interval, keepAlive string, keepState bool) any {
	return map[string]any{"of": []any{kind, permits, interval}, "keepAliveTime": keepAlive, "keepState": keepState}
}

// update has either side change the rate.
func (l limiter) update(byGo bool, r redisson.Rate, keepState bool) {
	l.w.t.Helper()
	if byGo {
		l.w.do(func() error { return l.golang.UpdateRate(l.w.t.Context(), r, keepState) })
		return
	}
	kind := "OVERALL"
	if r.PerClient {
		kind = "PER_CLIENT"
	}
	if ok := l.java.get("", "updateRate", args(kind, int(r.Permits), iso(r.Interval), iso(r.KeepAlive), keepState)); ok != true {
		l.w.t.Errorf("updateRate = %v, want true", ok)
	}
}

// is expects a rate in Redis, and that both sides can read it.
func (l limiter) is(r redisson.Rate) {
	l.w.t.Helper()
	ctx := l.w.t.Context()
	if got := must[redisson.Rate](l.w.t)(l.golang.Rate(ctx)); got != r {
		l.w.t.Errorf("Rate = %v, want %v", got, r)
	}
	if java := newJavaMutex(l.w.t, l.w.java, step{"getRateLimiter", l.name}, step{"getConfig"}); java.call("", "getRate").Value != float64(r.Permits) ||
		java.call("", "getRateInterval").Value != float64(r.Interval.Milliseconds()) {
		l.w.t.Errorf("Java reads another rate than %v", r)
	}
	want := map[string]string{"rate": fmt.Sprint(r.Permits), "interval": fmt.Sprint(r.Interval.Milliseconds()), "type": "0",
		"keepAliveTime": fmt.Sprint(r.KeepAlive.Milliseconds())}
	if got := l.w.rdb.HGetAll(ctx, l.name).Val(); !maps.Equal(got, want) {
		l.w.t.Errorf("settings %v, want %v", got, want)
	}
	for _, k := range []string{l.name, "{" + l.name + "}:value", "{" + l.name + "}:permits"} {
		if ttl := l.w.rdb.PTTL(ctx, k).Val(); r.KeepAlive > 0 && (ttl > r.KeepAlive || ttl < r.KeepAlive-10*time.Second) {
			l.w.t.Errorf("TTL of %s = %v, want %v", k, ttl, r.KeepAlive)
		}
	}
}

// rateUpdates: whoever changes the rate, the same is left under the new one.
func rateUpdates(t *testing.T, on setting) {
	w := newWorld(t, on)
	l := w.limiter("k")
	if ok := l.java.get("", "updateRate", args("OVERALL", 5, "PT1M", "PT0S", true)); ok != false {
		t.Errorf("updateRate without a rate = %v", ok)
	}
	if err := l.golang.UpdateRate(t.Context(), redisson.Rate{Permits: 5, Interval: time.Minute}, true); !errors.Is(err, redisson.ErrNoRate) {
		t.Errorf("UpdateRate without a rate = %v", err)
	}
	w.clean()
	for _, byGo := range []bool{true, false} {
		for _, r := range []redisson.Rate{
			{Permits: 9, Interval: time.Minute, KeepAlive: time.Hour},
			{Permits: 4, Interval: time.Hour, KeepAlive: 2 * time.Hour},
			{Permits: 6, Interval: time.Minute},
		} {
			l := w.limiter(fmt.Sprint(byGo, r.Permits))
			l.java.get("", "trySetRate", "OVERALL", 5, "PT2M")
			l.java.get("", "acquire", 3)
			l.update(byGo, r, true)
			l.has(r.Permits-3, fmt.Sprint(r.Permits-3), 3)
			l.is(r)
		}
	}
}

// rateResets: what was taken is forgotten if it is not to be kept, or if now each client has its own permits.
func rateResets(t *testing.T, on setting) {
	w := newWorld(t, on)
	ctx := t.Context()
	for _, byGo := range []bool{true, false} {
		for _, perClient := range []bool{true, false} {
			l := w.limiter(fmt.Sprint(byGo, perClient))
			l.java.get("", "trySetRate", "OVERALL", 5, "PT1M")
			l.java.get("", "acquire", 3)
			l.update(byGo, redisson.Rate{Permits: 7, Interval: time.Minute, PerClient: perClient}, perClient)
			if n := w.rdb.Exists(ctx, "{"+l.name+"}:value", "{"+l.name+"}:permits").Val(); n != 0 {
				t.Errorf("by Go %v, per client %v: what was taken is still there", byGo, perClient)
			}
			if j, g := l.java.get("", "availablePermits"), must[int64](t)(l.golang.AvailablePermits(ctx)); j != 7.0 || g != 7 {
				t.Errorf("by Go %v, per client %v: available: Java %v, Go %d; want 7", byGo, perClient, j, g)
			}
		}
	}
}

// rateLowered: where more was taken than the new rate has, Go knows by how much, and Redisson can live with that.
func rateLowered(t *testing.T, on setting) {
	w := newWorld(t, on)
	ctx := t.Context()
	for _, byGo := range []bool{true, false} {
		l := w.limiter(fmt.Sprint(byGo))
		l.java.get("", "trySetRate", "OVERALL", 5, "PT3S")
		start := time.Now()
		for range 5 { // one each 200ms
			l.java.get("", "acquire", 1)
			w.pass(200 * time.Millisecond)
		}
		l.update(byGo, redisson.Rate{Permits: 2, Interval: 3 * time.Second}, true)
		left, most := "-3", 2
		if !byGo {
			left, most = "0", 5 // each permit that comes back can be taken, as under the former rate
		}
		if got := w.rdb.Get(ctx, "{"+l.name+"}:value").Val(); got != left {
			t.Errorf("by Go %v: %q is left, want %s", byGo, got, left)
		}
		if l.java.get("", "tryAcquire", 1) != false || must[bool](t)(l.golang.TryAcquire(ctx, 1, 0)) {
			t.Errorf("by Go %v: there is a permit too many", byGo)
		}
		taken := 0
		for time.Since(start) < 4500*time.Millisecond {
			if l.java.get("", "tryAcquire", 1) == true {
				taken++
			}
			w.pass(20 * time.Millisecond)
		}
		if taken != most {
			t.Errorf("by Go %v: Java takes %d permits in 3s, want %d", byGo, taken, most)
		}
	}
}

// iso is a duration as Java reads it.
func iso(d time.Duration) string { return fmt.Sprintf("PT%dS", int64(d.Seconds())) }

// rateRefusals: the same is refused on both sides, and no permits are given back to nobody.
func rateRefusals(t *testing.T, on setting) {
	w := newWorld(t, on)
	ctx := t.Context()
	l := w.limiter("k")
	short := redisson.Rate{Permits: 1, Interval: time.Minute, KeepAlive: 59 * time.Second}
	for what, err := range map[string]error{
		"Java: trySetRate": l.java.call("", "trySetRate", "OVERALL", 1, "PT1M", "PT59S").err(),
		"Java: setRate":    l.java.call("", "setRate", "OVERALL", 1, "PT1M", "PT59S").err(),
		"Java: updateRate": l.java.call("", "updateRate", args("OVERALL", 1, "PT1M", "PT59S", true)).err(),
		"Java: release":    l.java.call("", "release", 1).err(),
		"Java: release -1": l.java.call("", "release", -1).err(),
		"Go: TrySetRate":   second(l.golang.TrySetRate(ctx, short)),
		"Go: SetRate":      l.golang.SetRate(ctx, short),
		"Go: UpdateRate":   l.golang.UpdateRate(ctx, short, true),
		"Go: Release":      l.golang.Release(ctx, 1),
		"Go: Release -1":   l.golang.Release(ctx, -1),
	} {
		if err == nil {
			t.Errorf("%s was not refused", what)
		}
	}
	l.java.get("", "release", 0)
	w.do(func() error { return l.golang.Release(ctx, 0) })
	w.clean()
	if n := w.rdb.Exists(ctx, "k").Val(); n != 0 {
		t.Error("there is a rate limiter")
	}
}

func second[T any](_ T, err error) error { return err }
