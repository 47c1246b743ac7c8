package interop

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/setnxlock"
	"github.com/latchkey-go/latchkey/redisson"
)

// setnxScenarios are those of package setnxlock with lock4j, Spring Integration and ShedLock.
var setnxScenarios = []scenario{
	{name: "setnx_exclusion", play: each(setnxExclusion), long: true},
	{name: "setnx_joined_keys", play: each(setnxJoinedKeys), long: true},
	{name: "setnx_go_waits", play: each(setnxGoWaits), long: true},
	{name: "setnx_java_waits", play: each(setnxJavaWaits), long: true},
	{name: "setnx_messages", play: eachThat(func(l setnxLibrary) bool { return l.messages }, setnxMessages), long: true},
	{name: "setnx_java_dies", play: each(setnxJavaDies), long: true},
	{name: "setnx_go_dies", play: each(setnxGoDies), long: true},
	{name: "setnx_java_is_late", play: each(setnxJavaIsLate), long: true},
	{name: "setnx_go_is_late", play: each(setnxGoIsLate), long: true},
	{name: "setnx_java_renews", play: eachThat(func(l setnxLibrary) bool { return l.name != "lock4j" }, setnxJavaRenews), long: true},
	{name: "setnx_lock4j_renews", play: eachThat(func(l setnxLibrary) bool { return l.name == "lock4j" }, setnxLock4jRenews), long: true},
	{name: "setnx_go_renews", play: each(setnxGoRenews), long: true},
	{name: "setnx_kept", play: each(setnxKept), long: true},
	{name: "setnx_kept_by_shedlock", play: eachThat(func(l setnxLibrary) bool { return strings.HasPrefix(l.name, "shedlock") }, setnxKeptByShedLock), long: true},
	{name: "setnx_counting", play: each(setnxCounting), long: true},
	{name: "setnx_beside_redisson", play: setnxBesideRedisson, long: true},
}

func setnxExclusion(w *setnxWorld) {
	w.mustTakeInJava(minute)
	if n := w.rdb.Exists(w.Context(), w.library.prefix+setnxKey).Val(); n != 1 {
		w.Errorf("no key %s%s", w.library.prefix, setnxKey)
	}
	w.expectBusy(minute)
	w.javaGives()
	h := w.mustTake(0, 0)
	if w.javaTakes(0, minute) || w.javaTakes(150*time.Millisecond, minute) {
		w.Error("Java takes a lock that Go has")
	}
	w.release(h)
	w.mustTakeInJava(minute)
	w.javaGives()
	w.expectNothingLeft()
}

// A key that Java joins together of a request is a template with raw in Go.
func setnxJoinedKeys(w *setnxWorld) {
	source := joining(w)["raw"]
	for _, p := range purchases {
		key := keyOf(w, source, p)
		javaTakes := func() bool {
			a := w.call(w.java, "t", "take", p.joined(), 0, minute.Milliseconds())
			if a.err() != nil {
				w.Fatalf("%q: Java takes the lock: %v", p, a.err())
			}
			return a.Value == true
		}
		if !javaTakes() {
			w.Fatalf("%q: Java can't have a lock that is free", p)
		}
		if h, err := w.locker.Acquire(w.Context(), lock.Request{Key: key}); !errors.Is(err, lock.ErrBusy) {
			w.Errorf("%q: two holders, as Go gets in beside Java (%v)", p, err)
			if err == nil {
				w.release(h)
			}
		}
		if a := w.call(w.java, "t", "give", p.joined()); a.err() != nil {
			w.Fatalf("%q: Java gives the lock back: %v", p, a.err())
		}
		h := must[lock.Hold](w)(w.locker.Acquire(w.Context(), lock.Request{Key: key}))
		if javaTakes() {
			w.Errorf("%q: two holders, as Java gets in beside Go", p)
			w.call(w.java, "t", "give", p.joined())
		}
		w.release(h)
	}
	w.expectNothingLeft()
}

func setnxGoWaits(w *setnxWorld) {
	w.mustTakeInJava(minute)
	got := make(chan lock.Hold, 1)
	go func() { got <- w.mustTake(minute, 0) }()
	<-time.After(200 * time.Millisecond)
	w.expectBusy(minute)
	w.javaGives()
	w.release(receive(w, "Go waits", got))
	w.expectNothingLeft()
}

func setnxJavaWaits(w *setnxWorld) {
	h := w.mustTake(0, 0)
	got := make(chan bool, 1)
	go func() { got <- w.javaTakes(minute, minute) }()
	<-time.After(500 * time.Millisecond)
	if err := context.Cause(h.Context()); err != nil {
		w.Errorf("Go's hold has ended: %v", err)
	}
	w.release(h)
	if !receive(w, "Java waits", got) {
		w.Fatal("Java does not get the lock")
	}
	w.expectBusy(minute)
	w.javaGives()
	w.expectNothingLeft()
}

// receive waits for less than any lease or poll of these scenarios that would bring the same.
func receive[T any](w *setnxWorld, what string, c <-chan T) T {
	w.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(minute / 2):
		w.Fatalf("%s: nothing comes", what)
		panic("not reached")
	}
}

// A waiter who would sleep for an hour is woken by a message of Java's, and a waiter in Java, which sleeps for all of its wait, by one
// of Go's.
func setnxMessages(w *setnxWorld) {
	w.locker = w.newLocker(setnxlock.Poll(time.Hour, 0))
	w.mustTakeInJava(10 * minute)
	got := make(chan lock.Hold, 1)
	go func() { got <- w.mustTake(10*minute, 0) }()
	subscribed := func(n int64) func() bool {
		return func() bool {
			return w.rdb.PubSubNumPat(w.Context()).Val()+int64(len(w.rdb.PubSubChannels(w.Context(), "shop-channel:*").Val())) >= n
		}
	}
	(&world{t: w.T}).eventually("Go listens", subscribed(1))
	<-time.After(100 * time.Millisecond) // it has asked again
	w.javaGives()
	h := receive(w, "Go waits", got)
	taken := make(chan bool, 1)
	go func() { taken <- w.javaTakes(10*minute, minute) }()
	(&world{t: w.T}).eventually("Java listens", subscribed(1))
	<-time.After(500 * time.Millisecond)
	w.release(h)
	if !receive(w, "Java waits", taken) {
		w.Fatal("Java does not get the lock")
	}
	w.javaGives()
}

// setnxLease is short for those who wait for its end. Of that there is no message, and a registry that listens sleeps for all of its
// wait: patienceInJava.
const setnxLease, patienceInJava = 5 * time.Second, 15 * time.Second

func setnxJavaDies(w *setnxWorld) {
	p := ownPeer(w, newest)
	mortal := newSetnx(w, p, w.server.Addr)
	if a := w.call(mortal, "t", "take", setnxKey, 0, setnxLease.Milliseconds()); a.Value != true {
		w.Fatalf("Java takes the lock: %v, %v", a.Value, a.err())
	}
	start := time.Now()
	p.kill()
	w.expectBusy(setnxLease)
	w.release(w.mustTake(minute, 0))
	if took := time.Since(start); took < setnxLease/2 || took > 3*setnxLease {
		w.Errorf("the lock of a dead process was free after %v, want %v", took, setnxLease)
	}
}

func setnxGoDies(w *setnxWorld) {
	c := startChild(w, order{Addrs: []string{w.server.Addr}, Watchdog: setnxLease, Request: lock.Request{Key: setnxKey}, Setnx: w.library.name})
	c.acquired(w)
	<-time.After(setnxLease + setnxLease/2) // it renews
	if w.javaTakes(0, minute) {
		w.Fatal("Java takes a lock that Go renews")
	}
	c.kill()
	start := time.Now()
	if !w.javaTakes(patienceInJava, minute) {
		w.Fatal("Java does not get the lock of a dead process")
	}
	if took := time.Since(start); took > setnxLease+patienceInJava {
		w.Errorf("it took %v", took)
	}
	w.javaGives()
}

// The lease of the lock in Java is over, Go has it, and Java gives it back all the same. That does no harm but with ShedLock's default,
// and is noticed where the library says so.
func setnxJavaIsLate(w *setnxWorld) {
	w.mustTakeInJava(100 * time.Millisecond)
	w.locker = w.newLocker(setnxlock.Watchdog(setnxLease))
	h := w.mustTake(minute, 0)
	a := w.call(w.java, "t", "give", setnxKey)
	if noticed := a.err() != nil || a.Value != true; noticed != w.library.tells {
		w.Errorf("Java gives back a lock that it has lost: %v, %v", a.Value, a.err())
	}
	<-time.After(setnxLease) // a renewal or two
	if !w.library.checks {
		if cause := context.Cause(h.Context()); !errors.Is(cause, lock.ErrLost) {
			w.Errorf("Java has deleted Go's lock, and the hold ended with %v, want ErrLost", cause)
		}
		return
	}
	if err := context.Cause(h.Context()); err != nil {
		w.Errorf("Go's hold has ended: %v", err)
	}
	w.release(h)
}

func setnxGoIsLate(w *setnxWorld) {
	h := w.mustTake(0, time.Second)
	if !w.javaTakes(patienceInJava, minute) {
		w.Fatal("Java does not get a lock that has ended")
	}
	if err := h.Release(w.Context()); !errors.Is(err, lock.ErrLost) {
		w.Errorf("Release = %v, want ErrLost", err)
	}
	w.expectBusy(minute)
	w.javaGives()
}

func setnxJavaRenews(w *setnxWorld) {
	w.mustTakeInJava(setnxLease)
	if a := w.call(w.java, "t", "renew", setnxKey, minute.Milliseconds()); a.err() != nil {
		w.Fatal(a.err())
	}
	<-time.After(setnxLease + 100*time.Millisecond)
	w.expectBusy(minute)
	w.javaGives()
}

// With an expire of -1, lock4j renews by itself, to 30 seconds.
func setnxLock4jRenews(w *setnxWorld) {
	if a := w.call(w.java, "t", "take", setnxKey, 0, -1); a.Value != true {
		w.Fatalf("Java takes the lock: %v, %v", a.Value, a.err())
	}
	<-time.After(12 * time.Second) // a renewal comes after 10
	if left := w.rdb.PTTL(w.Context(), setnxKey).Val(); left < 25*time.Second {
		w.Errorf("%v are left of 30s", left)
	}
	w.expectBusy(30 * time.Second)
	w.javaGives()
}

func setnxGoRenews(w *setnxWorld) {
	w.locker = w.newLocker(setnxlock.Watchdog(setnxLease))
	h := w.mustTake(0, 0)
	<-time.After(2 * setnxLease)
	if w.javaTakes(0, minute) {
		w.Error("Java takes a lock that Go renews")
	}
	w.release(h)
	w.expectNothingLeft()
}

// What Go keeps after its release, Java does not get before.
func setnxKept(w *setnxWorld) {
	h := w.mustTake(0, 0)
	if err := h.(interface {
		Keep(context.Context, time.Duration) error
	}).Keep(w.Context(), setnxLease); err != nil {
		w.Fatal(err)
	}
	if w.javaTakes(0, minute) {
		w.Error("Java takes a lock that Go keeps")
	}
	if !w.javaTakes(patienceInJava, minute) {
		w.Error("Java does not get a lock that Go has kept")
	}
	w.javaGives()
}

func setnxKeptByShedLock(w *setnxWorld) {
	if a := w.call(w.java, "t", "takeAtLeast", setnxKey, 0, minute.Milliseconds(), setnxLease.Milliseconds()); a.Value != true {
		w.Fatalf("Java takes the lock: %v, %v", a.Value, a.err())
	}
	w.javaGives()
	w.expectBusy(setnxLease)
	w.release(w.mustTake(minute, 0))
}

// Threads in Java and two processes of Go count up together. Two at a time would lose a number.
func setnxCounting(w *setnxWorld) {
	const counter, threads, children = "counter", 2, 2
	var done []<-chan answer
	for i := range threads {
		own := newSetnx(w, w.java.peer, w.server.Addr)
		answers := make(chan answer, 1)
		go func() { answers <- w.call(own, string(rune('a'+i)), "count", setnxKey, counter, setnxRounds) }()
		done = append(done, answers)
	}
	for range children {
		c := startChild(w, order{Addrs: []string{w.server.Addr}, Watchdog: minute, Request: lock.Request{Key: setnxKey, Wait: forever}, Setnx: w.library.name, Counter: counter})
		defer c.acquired(w)
	}
	for _, answers := range done {
		if a := receive(w, "Java counts", answers); a.err() != nil || a.Value != float64(setnxRounds) {
			w.Errorf("Java counts: %v, %v", a.Value, a.err())
		}
	}
	(&world{t: w.T}).eventually("all have counted", func() bool {
		n, _ := w.rdb.Get(w.Context(), counter).Int()
		return n == (threads+children)*setnxRounds
	})
}

// Redisson and package setnxlock do not share locks. Under one key, they notice.
func setnxBesideRedisson(t *testing.T, on setting) {
	s := redistest.Start(t)
	rdb := s.Client(t)
	java := newJava(t, sharedPeer(t, on.version), config(s.Addr, nil), "")
	locker := must[*setnxlock.Locker](t)(setnxlock.New(rdb))
	if a := java.call("t", step{"getLock", setnxKey}, step{"tryLock"}); a.Value != true {
		t.Fatalf("Redisson takes the lock: %v, %v", a.Value, a.err())
	}
	if _, err := locker.Acquire(t.Context(), lock.Request{Key: setnxKey, Wait: minute}); !errors.Is(err, lock.ErrRefused) || !strings.Contains(err.Error(), "Redisson") {
		t.Errorf("Acquire of Redisson's lock = %v, want ErrRefused with its name", err)
	}
	if a := java.call("t", step{"getLock", setnxKey}, step{"unlock"}); a.err() != nil {
		t.Fatal(a.err())
	}
	h := must[lock.Hold](t)(locker.Acquire(t.Context(), lock.Request{Key: setnxKey}))
	if a := java.call("t", step{"getLock", setnxKey}, step{"tryLock"}); a.err() == nil || !strings.Contains(a.Error, "WRONGTYPE") {
		t.Errorf("Redisson tries the lock: %v, %v, want WRONGTYPE", a.Value, a.err())
	}
	client := must[*redisson.Client](t)(redisson.New(rdb))
	defer client.Close()
	if _, err := client.Acquire(t.Context(), lock.Request{Key: setnxKey}); !errors.Is(err, lock.ErrRefused) {
		t.Errorf("package redisson tries the lock: %v, want ErrRefused", err)
	}
	if err := h.Release(t.Context()); err != nil {
		t.Error(err)
	}
}
