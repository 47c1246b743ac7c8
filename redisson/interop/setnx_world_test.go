package interop

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/setnxlock"
	"github.com/redis/go-redis/v9"
)

// setnxLibrary is a library in Java that locks with SET NX PX, and the preset of package setnxlock for it.
type setnxLibrary struct {
	name   string
	getter step // of its locks at a Setnx in Java
	preset func() setnxlock.Option
	prefix string // of keys in Redis
	// tells says that it notices a lock that was lost, and checks that it compares the value before it deletes.
	tells, checks bool
	messages      bool // it publishes releases, and listens
}

func registryPreset() setnxlock.Option { return setnxlock.RedisLockRegistry("shop") }
func shedLockPreset() setnxlock.Option { return setnxlock.ShedLock("default") }

var setnxLibraries = []setnxLibrary{
	{"lock4j", step{"lock4j"}, setnxlock.Lock4j, "", true, true, false},
	{"registry_spin", step{"registry", "shop", "SPIN_LOCK"}, registryPreset, "shop:", true, true, false},
	{"registry_messages", step{"registry", "shop", "PUB_SUB_LOCK"}, registryPreset, "shop:", true, true, true},
	{"shedlock", step{"shedLock", "default", false}, shedLockPreset, "job-lock:default:", false, false, false},
	{"shedlock_safe", step{"shedLock", "default", true}, shedLockPreset, "job-lock:default:", false, true, false},
}

// setnxWorld is a server of its own, with one of the libraries and package setnxlock as clients.
type setnxWorld struct {
	*testing.T
	library setnxLibrary
	server  *redistest.Server
	rdb     *redis.Client
	java    *javaClient
	locker  *setnxlock.Locker
}

func newSetnxWorld(t *testing.T, on setting, library setnxLibrary) *setnxWorld {
	t.Helper()
	s := redistest.Start(t)
	w := &setnxWorld{T: t, library: library, server: s, rdb: s.Client(t)}
	w.java = newSetnx(t, sharedPeer(t, on.version), s.Addr)
	w.locker = w.newLocker(setnxlock.Poll(5*time.Millisecond, 5*time.Millisecond))
	for _, s := range []step{{"take", "first", 0, 60_000}, {"give", "first"}} { // this connects, which would take a part of a lease
		if a := w.call(w.java, "t", s[0].(string), s[1:]...); a.Value != true {
			t.Fatalf("Java: %v: %v, %v", s, a.Value, a.err())
		}
	}
	return w
}

func (w *setnxWorld) newLocker(opts ...setnxlock.Option) *setnxlock.Locker {
	w.Helper()
	return must[*setnxlock.Locker](w)(setnxlock.New(w.rdb, append(opts, w.library.preset())...))
}

// newSetnx makes a Setnx in the peer, which is closed when the test ends.
func newSetnx(tb testing.TB, p *peer, addr string) *javaClient {
	tb.Helper()
	c := &javaClient{p, fmt.Sprintf("c%d", p.clients.Add(1))}
	if a := <-p.send(command{Client: c.name, Setnx: addr}); a.err() != nil {
		tb.Fatal(a.err())
	}
	tb.Cleanup(func() { <-p.send(command{Client: c.name}) })
	return c
}

// each plays a scenario with each library.
func each(play func(w *setnxWorld)) func(*testing.T, setting) {
	return eachThat(func(setnxLibrary) bool { return true }, play)
}

// eachThat does so with the libraries of some sort.
func eachThat(sort func(setnxLibrary) bool, play func(w *setnxWorld)) func(*testing.T, setting) {
	return func(t *testing.T, on setting) {
		for _, library := range setnxLibraries {
			if sort(library) {
				t.Run(library.name, func(t *testing.T) {
					t.Parallel()
					play(newSetnxWorld(t, on, library))
				})
			}
		}
	}
}

// call calls a method of the library's locks in Java, in a thread.
func (w *setnxWorld) call(c *javaClient, thread, method string, args ...any) answer {
	w.Helper()
	return c.call(thread, w.library.getter, append(step{method}, args...))
}

const (
	setnxKey = "order:42"
	minute   = time.Minute
)

// javaTakes takes the lock in Java, and reports whether it was to be had.
func (w *setnxWorld) javaTakes(wait, lease time.Duration) bool {
	w.Helper()
	a := w.call(w.java, "t", "take", setnxKey, wait.Milliseconds(), lease.Milliseconds())
	if a.err() != nil {
		w.Fatalf("Java takes the lock: %v", a.err())
	}
	return a.Value == true
}

func (w *setnxWorld) mustTakeInJava(lease time.Duration) {
	w.Helper()
	if !w.javaTakes(0, lease) {
		w.Fatal("Java can't have a lock that is free")
	}
}

func (w *setnxWorld) javaGives() {
	w.Helper()
	if a := w.call(w.java, "t", "give", setnxKey); a.err() != nil || a.Value != true {
		w.Fatalf("Java gives the lock back: %v, %v", a.Value, a.err())
	}
}

// goTakes takes the lock in Go.
func (w *setnxWorld) goTakes(wait, lease time.Duration) (lock.Hold, error) {
	return w.locker.Acquire(context.Background(), lock.Request{Key: setnxKey, Wait: wait, Lease: lease})
}

func (w *setnxWorld) mustTake(wait, lease time.Duration) lock.Hold {
	w.Helper()
	return must[lock.Hold](w)(w.goTakes(wait, lease))
}

func (w *setnxWorld) expectBusy(lease time.Duration) {
	w.Helper()
	_, err := w.goTakes(0, 0)
	busy, ok := errors.AsType[*lock.BusyError](err)
	if !ok || busy.Remaining <= 0 || busy.Remaining > lease {
		w.Errorf("Go tries a lock that Java has: %v, want busy for up to %v", err, lease)
	}
}

func (w *setnxWorld) release(h lock.Hold) {
	w.Helper()
	if err := h.Release(context.Background()); err != nil {
		w.Errorf("Go gives the lock back: %v", err)
	}
}

func (w *setnxWorld) expectNothingLeft() {
	w.Helper()
	if left := must[[]string](w)(w.rdb.Keys(context.Background(), "*").Result()); len(left) > 0 {
		w.Errorf("keys %q are left", left)
	}
}
