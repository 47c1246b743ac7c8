package interop

import (
	"errors"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/lock"
)

// levelScenarios are those of permits with levels and rates.
var levelScenarios = []scenario{
	{name: "45_levels_beside_a_semaphore_of_Java", play: levelsBesideJava},
	{name: "45_levels_that_Go_has_made", play: levelsOfGo},
	{name: "rate_of_a_permit", play: rateOfPermit},
}

// levelled asks for the one permit of a user, and for one of so many of k.
func levelled(user string, limit int, wait time.Duration) lock.Request {
	return lock.Request{Key: user, Kind: lock.Permit, Limit: 1, Wait: wait, Levels: []lock.Level{{Key: "k", Limit: limit}}}
}

func (w *world) acquire(r lock.Request) lock.Hold {
	w.t.Helper()
	return must[lock.Hold](w.t)(w.client.Acquire(w.t.Context(), r))
}

// full expects that a level has no permit, or the rate.
func (w *world) full(r lock.Request, level string, rate bool) {
	w.t.Helper()
	_, err := w.client.Acquire(w.t.Context(), r)
	busy, ok := errors.AsType[*lock.BusyError](err)
	if !ok || busy.Level != level || busy.Rate != rate {
		w.t.Errorf("Acquire: %v, want that %s is used up, by a rate: %v", err, level, rate)
	}
}

// takes begins to acquire what the other side has. The function that it returns gives that back.
func (w *world) takes(r lock.Request) (p *pending, giveBack func()) {
	w.t.Helper()
	var h lock.Hold
	p = w.beginAt(semaphoreMessages, "Go: Acquire", func() result {
		return timed(func() (err error) { h, err = w.client.Acquire(w.t.Context(), r); return err })
	})
	return p, func() { w.do(func() error { return h.Release(w.t.Context()) }) }
}

// levelsBesideJava: a level goes by the number that Java has set. Both sides shut each other out, and wake each other.
func levelsBesideJava(t *testing.T, on setting) {
	w := newWorld(t, on)
	p := newPermits(w, 2)
	ctx := t.Context()
	a, b := w.acquire(levelled("a", 100, 0)), w.acquire(levelled("b", 1, 0))
	p.count(0, 2)
	w.full(levelled("c", 100, 0), "k", false)
	w.full(levelled("a", 100, 0), "a", false)
	if n := w.rdb.Exists(ctx, "c").Val(); n != 0 {
		t.Error("a call that was refused has left a semaphore")
	}
	if id := p.java.get("", "tryAcquire"); id != nil {
		t.Errorf("tryAcquire of a third of two permits = %v", id)
	}

	// Both wait. The release tells the one of the list, and Redisson with a number that begins with 0.
	messages := w.messages(semaphoreMessages)
	golang, giveBack := w.takes(levelled("c", 100, forever))
	var id any
	java := w.beginAt(semaphoreMessages, "Java: acquire", func() result {
		answer := p.java.call("a", "acquire", 20, "SECONDS")
		id = answer.Value
		r := answer.result()
		r.ok = r.err == nil
		return r
	})
	released := w.do(func() error { return a.Release(ctx) })
	messages.expect("01")
	messages.close()
	w.do(func() error { return b.Release(ctx) })
	for what, p := range map[string]*pending{"Go": golang, "Java": java} {
		w.between(what+" has it after", p.gets().end.Sub(released.start), 0, soon)
	}
	p.count(0, 2)
	giveBack()

	// Java's release wakes who waits for a level.
	other := p.java.get("", "acquire", 20, "SECONDS")
	golang, giveBack = w.takes(levelled("a", 100, forever))
	start := time.Now()
	p.javaReleases(id, false)
	w.between("Go has it after", golang.gets().end.Sub(start), 0, soon)
	giveBack()
	p.javaReleases(other, false)
	p.count(2, 0)
}

// levelsOfGo: Java finds a semaphore where Go has made one, and takes a permit of it.
func levelsOfGo(t *testing.T, on setting) {
	w := newWorld(t, on)
	p := permits{w, w.object("getPermitExpirableSemaphore", "k"), w.client.PermitExpirableSemaphore("k")}
	if id := p.java.get("", "tryAcquire", 0, 20, "SECONDS"); id != nil {
		t.Errorf("tryAcquire of nothing = %v", id)
	}
	a := w.acquire(levelled("a", 2, 0))
	p.count(1, 1)
	id := p.java.get("", "tryAcquire", 0, 20, "SECONDS")
	if id == nil {
		t.Fatal("Java has not got the second of two permits")
	}
	p.count(0, 2)
	w.full(levelled("b", 2, 0), "k", false)
	if id := p.java.get("", "tryAcquire", 0, 20, "SECONDS"); id != nil {
		t.Errorf("tryAcquire of a third of two permits = %v", id)
	}
	java := p.java.begin(semaphoreMessages, "tryAcquire", 20, 2, "SECONDS")
	released := w.do(func() error { return a.Release(t.Context()) })
	w.between("Java has it after", java.gets().end.Sub(released.start), 0, soon)
	golang, giveBack := w.takes(levelled("b", 2, forever))
	start := time.Now()
	p.javaReleases(id, false)
	w.between("Go has it after", golang.gets().end.Sub(start), 0, soon)
	giveBack()
}

// rateOfPermit: the rate of a permit is Redisson's rate limiter. One that Java has set keeps its numbers, and Java sees one that was set here.
func rateOfPermit(t *testing.T, on setting) {
	w := newWorld(t, on)
	for _, byJava := range []bool{true, false} {
		key := map[bool]string{true: "java", false: "go"}[byJava]
		r := lock.Request{Key: key, Kind: lock.Permit, Rate: lock.Rate{Permits: 2, Interval: time.Minute}}
		limiter := w.object("getRateLimiter", "{"+key+"}:rate")
		if byJava {
			limiter.get("", "trySetRate", "OVERALL", 2, "PT1M")
			r.Rate = lock.Rate{Permits: 100, Interval: time.Second}
		}
		w.acquire(r)
		config := newJavaMutex(t, w.java, step{"getRateLimiter", "{" + key + "}:rate"}, step{"getConfig"})
		if rate, interval := config.get("", "getRate"), config.get("", "getRateInterval"); rate != 2.0 || interval != 60_000.0 {
			t.Errorf("%s: getConfig has %v within %v ms, want 2 within a minute", key, rate, interval)
		}
		if free := limiter.get("", "availablePermits"); free != 1.0 {
			t.Errorf("%s: availablePermits = %v, want 1", key, free)
		}
		if limiter.get("", "tryAcquire", 1) != true {
			t.Errorf("%s: Java has not got the second permit", key)
		}
		w.full(r, "", true)
		if limiter.get("", "tryAcquire", 1) != false {
			t.Errorf("%s: Java has got a third permit", key)
		}
	}
}
