package interop

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/lock"
)

// leaseScenarios are those of locks that last for a time that was asked for.
var leaseScenarios = []scenario{
	{name: "58_lock_with_a_lease", play: func(t *testing.T, on setting) { bothWays(t, on, lockFor) }, long: true},
	{name: "59_keep", play: keep, long: true},
}

// lockFor: a lock that was waited for without an end, but has a lease, ends by itself.
func lockFor(w *world, name string, first, second mutex) {
	const lease = 5 * time.Second
	w.take(first, "a", 0)
	p := begin(w.t, second.String()+" waits to have the lock for a while", func() result { return second.take("b", forever, lease) })
	w.eventually("it waits", func() bool { return w.subscribers(channelOf(name)) > 0 })
	p.waits(300 * time.Millisecond)
	released := w.release(first, "a")
	held := p.gets()
	w.between("woken after", held.end.Sub(released.start), 0, soon)
	w.between("time to live", first.ttl(), time.Second, lease)
	next := w.wait(first, "a", channelOf(name), forever)
	got := next.gets()
	w.between("since the lock was released", got.end.Sub(released.start), lease, time.Hour)
	w.between("since the lock was had", got.end.Sub(held.end), 0, lease+soon)
	if r := second.unlock("b"); !notOwner(r.err) {
		w.t.Errorf("%v unlocks after the lease: %v, want not the owner", second, r.err)
	}
	w.only(name, "1")
	w.release(first, "a")
}

// keptFor is how long Go keeps what it gives back.
const keptFor = 3 * time.Second

// keep: what Go gives back but keeps is refused to both sides for that time, and who waits has it then.
func keep(t *testing.T, on setting) {
	w := newWorld(t, on)
	t.Run("kinds", func(t *testing.T) {
		w.beside(t, "plain", func(w *world) {
			java, golang := w.pair("plain")
			w.keeps("plain", golang, golang, java)
			w.keepsForWaiter("plain", channelOf("plain"), golang, java)
			w.keepsInside(golang, java)
		})
		w.beside(t, "fenced", func(w *world) {
			f := w.fence("fenced")
			w.keeps("fenced", f.golang, f.golang, f.java)
			w.keepsForWaiter("fenced", channelOf("fenced"), f.golang, f.java)
		})
		w.beside(t, "fair", func(w *world) {
			java, golang := w.fairPair("fair")
			w.keeps("fair", golang, golang, java)
			w.keepsForWaiter("fair", channelOf("fair")+":*", golang, java)
			w.keepsInside(golang, java)
		})
		w.beside(t, "read", func(w *world) {
			java, golang := w.rwPair("read")
			w.keeps("read", golang.read, golang.write, java.write)
			w.keepsForWaiter("read", rwChannelOf("read"), golang.read, java.write)
			w.keepsInside(golang.read, java.write)
			w.take(golang.read, "a", 0)
			w.kept(golang.read)
			w.take(java.read, "b", 0)
			w.release(java.read, "b")
			w.refused(java.write, "b")
		})
		w.beside(t, "write", func(w *world) {
			java, golang := w.rwPair("write")
			w.keeps("write", golang.write, golang.read, java.read)
			w.keepsForWaiter("write", rwChannelOf("write"), golang.write, java.read)
			w.keepsInside(golang.write, java.read)
		})
		w.beside(t, "permit", keepsPermit)
	})
	w.pass(keptFor)
	w.rdb.Del(t.Context(), "redisson_lock_token:{fenced}", "k")
	w.clean()
}

// kept gives back a lock of thread a that stays.
func (w *world) kept(m mutex) result {
	w.t.Helper()
	r := m.(*goMutex).keep("a", keptFor)
	if r.err != nil {
		w.t.Errorf("Keep: %v", r.err)
	}
	return r
}

// keeps: others are refused for as long as the lock is kept, and not much longer. It is not the holder's any more.
func (w *world) keeps(name string, holder mutex, others ...mutex) {
	w.t.Helper()
	w.take(holder, "a", 0)
	before, held := w.hash(name), holder.(*goMutex).threads.current("a")
	over := span{}
	over.extend(w.kept(holder), keptFor)
	if r := holder.(*goMutex).unlockUnder(held); !errors.Is(r.err, lock.ErrNotHeld) {
		w.t.Errorf("Unlock of what was given back = %v, want ErrNotHeld", r.err)
	}
	after := w.hash(name)
	same := func(h, _ string) bool { return h != "mode" && after[h] != "" }
	if maps.DeleteFunc(before, same); len(after) != len(before) {
		w.t.Errorf("%s = %v, want a holder in place of the former one", name, after)
	}
	refused, got := firstOf(others...)
	w.inTime("the lock was had", over, refused, got)
}

// inTime expects a lock that others tried to get to have been had when it was to be, and at most half a second later.
func (w *world) inTime(what string, at span, refused, got result) {
	w.t.Helper()
	if got.err != nil || !got.ok {
		w.t.Errorf("%s: %v, %v; want that it is", what, got.ok, got.err)
	}
	if got.end.Before(at.from) {
		w.t.Errorf("%s %v too soon", what, at.from.Sub(got.end))
	}
	if late := refused.start.Sub(at.to); late > 500*time.Millisecond {
		w.t.Errorf("%s late: a try was refused %v after it could be", what, late)
	}
}

// keepsForWaiter: who waits for the lock is notified that it is kept, and comes when it is not any more.
func (w *world) keepsForWaiter(name, channel string, holder mutex, waiter mutex) {
	w.t.Helper()
	w.take(holder, "a", 0)
	p := begin(w.t, fmt.Sprintf("%v waits for what is kept", waiter), func() result { return waiter.take(name, forever, 0) })
	w.eventually("it waits", func() bool { return len(w.rdb.PubSubChannels(w.t.Context(), channel).Val()) == 1 })
	p.waits(100 * time.Millisecond)
	kept := w.kept(holder)
	got := p.gets()
	w.between("had after", got.end.Sub(kept.start), keptFor, time.Hour)
	w.between("had after it could be", got.end.Sub(kept.end), 0, keptFor+soon)
	w.release(waiter, name)
}

// keepsInside: an inner hold that is kept goes on beside the outer one, and after it.
func (w *world) keepsInside(holder mutex, other mutex) {
	w.t.Helper()
	w.take(holder, "a", 0)
	w.take(holder, "a", 0)
	over := span{}
	over.extend(w.kept(holder), keptFor)
	w.pass(500 * time.Millisecond)
	w.refused(other, "b")
	w.release(holder, "a")
	refused, got := firstOf(other)
	w.inTime("what was kept inside was had", over, refused, got)
}

// keepsPermit: a permit that is kept is not free, for either side.
func keepsPermit(w *world) {
	p := newPermits(w, 1)
	hold := must[lock.Hold](w.t)(w.client.Acquire(w.t.Context(), lock.Request{Key: "k", Kind: lock.Permit, Limit: 1}))
	kept := w.do(func() error {
		return hold.(interface {
			Keep(ctx context.Context, d time.Duration) error
		}).Keep(w.t.Context(), keptFor)
	})
	p.count(0, 1)
	if id := p.java.get("", "tryAcquire"); id != nil {
		w.t.Errorf("tryAcquire of a permit that is kept = %v", id)
	}
	a := p.java.call("permit", "tryAcquire", 5000, 10000, "MILLISECONDS")
	w.between("Java has it after", a.result().end.Sub(kept.start), keptFor, time.Hour)
	w.between("Java has it after it could", a.result().end.Sub(kept.end), 0, keptFor+soon)
	p.javaReleases(a.Value, false)
}
