package interop

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson"
	"github.com/redis/go-redis/v9"
)

// plainScenarios are those of the plain lock. All but 20 are about what the two sides do to each other, so both play.
var plainScenarios = []scenario{
	{name: "01_Java_holds_on", play: func(t *testing.T, on setting) {
		w := newWorld(t, on)
		java, golang := w.pair("k")
		w.holdsOn(java, golang)
		var busy *lock.BusyError
		if _, err := w.client.Acquire(t.Context(), lock.Request{Key: "k"}); !errors.As(err, &busy) {
			t.Errorf("Acquire = %v, want a BusyError", err)
		} else {
			w.between("remaining", busy.Remaining, 15*time.Second, 30*time.Second)
		}
	}, long: true},
	{name: "02_Go_holds_on", play: func(t *testing.T, on setting) {
		w := newWorld(t, on)
		java, golang := w.pair("k")
		w.holdsOn(golang, java)
	}, long: true},
	{name: "03_Java_releases_to_Go", play: func(t *testing.T, on setting) {
		w := newWorld(t, on)
		java, golang := w.pair("k")
		w.handsOver("k", java, golang)
	}},
	{name: "04_Go_releases_to_Java", play: func(t *testing.T, on setting) {
		w := newWorld(t, on)
		java, golang := w.pair("k")
		w.handsOver("k", golang, java)
	}},
	{name: "05_Go_holds_twice", play: func(t *testing.T, on setting) {
		w := newWorld(t, on)
		java, golang := w.pair("k")
		w.holdsTimes(2, "k", golang, java)
	}},
	{name: "06_Java_holds_three_times", play: func(t *testing.T, on setting) {
		w := newWorld(t, on)
		java, golang := w.pair("k")
		w.holdsTimes(3, "k", java, golang)
	}},
	{name: "07_holder_is_killed", play: holderIsKilled, long: true},
	{name: "08_counter", play: counter},
	{name: "09_foreign_unlock", play: func(t *testing.T, on setting) { bothWays(t, on, foreignUnlock) }},
	{name: "10_unlock_after_the_lease", play: func(t *testing.T, on setting) { bothWays(t, on, unlockAfterLease) }, long: true},
	{name: "11_Java_forces_Go", play: javaForcesGo, long: true},
	{name: "12_Go_forces_Java", play: goForcesJava},
	{name: "13_partial_unlock_keeps_the_lease", play: partialUnlock},
	{name: "14_shorter_lease_on_reentry", play: func(t *testing.T, on setting) { bothWays(t, on, shorterLease) }},
	{name: "15_try_in_vain", play: func(t *testing.T, on setting) { bothWays(t, on, tryInVain) }},
	{name: "15_waiter_is_cancelled", play: waiterIsCancelled},
	{name: "16_try_with_success", play: func(t *testing.T, on setting) { bothWays(t, on, tryWithSuccess) }},
	{name: "17_names", play: names, long: true},
	{name: "18_connection_of_a_waiter_is_lost", play: waiterCutOff},
	{name: "19_different_watchdogs", play: differentWatchdogs, long: true},
	{name: "20_renewal_of_many", play: renewalOfMany, long: true},
	{name: "21_release_is_repeated", play: repeatedRelease, long: true},
	{name: "22_equal_thread_numbers", play: equalThreads},
}

func channelOf(name string) string { return "redisson_lock__channel:" + braced(name) }

// braced is a name in the names that are made from it.
func braced(name string) string {
	if strings.Contains(name, "{") {
		return name
	}
	return "{" + name + "}"
}

// holdsOn: a lock that is renewed stays, much longer than its lease.
func (w *world) holdsOn(holder, other mutex) {
	w.take(holder, "a", 0)
	for _, d := range []time.Duration{0, 45 * time.Second} {
		w.pass(d)
		w.refused(other, "b")
		w.between("time to live", other.ttl(), 15*time.Second, 30*time.Second)
	}
}

func (w *world) handsOver(name string, holder, waiter mutex) {
	w.wakes(func() (released, woken result) {
		w.take(holder, "a", 0)
		p := w.wait(waiter, "b", channelOf(name), forever)
		p.waits(100 * time.Millisecond)
		released, woken = w.release(holder, "a"), p.gets()
		w.release(waiter, "b")
		return released, woken
	})
	w.clean()
}

// holdsTimes: a holder gives the lock back as often as it has taken it. Go leaves the count as it is, until it asks Redis about the
// lock for another reason.
func (w *world) holdsTimes(n int, name string, holder, waiter mutex) {
	for range n {
		w.take(holder, "a", 0)
	}
	all := strconv.Itoa(n)
	w.only(name, all)
	if !waiter.locked() || holder.count("a") != n {
		w.t.Errorf("%v sees it locked: %v; %v counts %d, want true and %d", waiter, waiter.locked(), holder, holder.count("a"), n)
	}
	p := w.wait(waiter, "b", channelOf(name), forever)
	for n--; n > 0; n-- {
		w.release(holder, "a")
		p.waits(200 * time.Millisecond)
		counts := []string{strconv.Itoa(n)}
		if _, ok := holder.(*goMutex); ok {
			counts = append(counts, all)
		}
		w.only(name, counts...)
		w.refused(waiter, "c")
	}
	released := w.release(holder, "a")
	w.between("woken after", p.gets().end.Sub(released.start), 0, soon)
	w.release(waiter, "b")
	w.clean()
}

// holderIsKilled: nobody says that the lock is free, so it is had when its lease of 2s is over.
func holderIsKilled(t *testing.T, on setting) {
	w := newWorld(t, on)
	t.Run("Go", func(t *testing.T) {
		w.t = t
		java, _ := w.pair("go")
		w.outlives(java, func() (held result, kill func()) {
			c := w.startChild(30*time.Second, lock.Request{Key: "go", Lease: shortLease})
			return c.acquired(t), c.kill
		})
	})
	t.Run("Java", func(t *testing.T) {
		w.t = t
		_, golang := w.pair("java")
		w.outlives(golang, func() (held result, kill func()) {
			mortal, kill := w.mortal(nil)
			java := newJavaMutex(t, mortal, step{"getLock", "java"})
			w.take(java, "warm up", 0)
			w.release(java, "warm up")
			return w.take(java, "a", shortLease), kill
		})
	})
}

const shortLease = 2 * time.Second

// outlives has somebody take the lock for a short lease and die. Who waits has it soon after that is over, and not before.
func (w *world) outlives(next mutex, take func() (held result, kill func())) {
	w.t.Helper()
	w.wakesWithin(300*time.Millisecond, func() (over, got result) {
		held, kill := take()
		p := begin(w.t, next.String()+" waits for the lock of the dead", func() result { return next.take("a", forever, 0) })
		kill()
		got = p.gets()
		w.between("had after it was asked for", got.end.Sub(held.start), shortLease, time.Hour)
		w.release(next, "a")
		return result{start: held.end.Add(shortLease)}, got
	})
}

// counter: ten threads add to a number that only the lock protects.
func counter(t *testing.T, on setting) {
	w := newWorld(t, on)
	java, golang := w.pair("k")
	w.counts(5, 200, java, golang)
	w.clean()
}

// counts has threads on each of the sides add to a number that only the lock protects.
func (w *world) counts(threads, rounds int, all ...mutex) {
	w.t.Helper()
	const key = "counter"
	ctx := context.Background()
	work := func(m mutex, thread string) error {
		for range rounds {
			if r := m.take(thread, forever, 0); r.err != nil {
				return fmt.Errorf("%v locks: %w", m, r.err)
			}
			n, err := w.rdb.Get(ctx, key).Int()
			if err != nil && !errors.Is(err, redis.Nil) {
				return err
			}
			if err := w.rdb.Set(ctx, key, n+1, 0).Err(); err != nil {
				return err
			}
			if r := m.unlock(thread); r.err != nil {
				return fmt.Errorf("%v unlocks: %w", m, r.err)
			}
		}
		return nil
	}
	var wg sync.WaitGroup
	for i := range threads {
		for _, m := range all {
			wg.Go(func() {
				if err := work(m, strconv.Itoa(i)); err != nil {
					w.t.Error(err)
				}
			})
		}
	}
	wg.Wait()
	if got, want := w.rdb.GetDel(ctx, key).Val(), strconv.Itoa(len(all)*threads*rounds); got != want {
		w.t.Errorf("counted %s, want %s", got, want)
	}
}

func foreignUnlock(w *world, name string, holder, other mutex) {
	w.take(holder, "a", 0)
	before, messages := w.hash(name), w.messages(channelOf(name))
	if r := other.unlock("a"); !notOwner(r.err) {
		w.t.Errorf("%v unlocks what %v holds: %v, want not the owner", other, holder, r.err)
	}
	messages.expect()
	if after := w.hash(name); after[w.only(name, "1")] != before[w.only(name, "1")] {
		w.t.Errorf("before %v, after %v", before, after)
	}
	w.release(holder, "a")
	messages.expect("0")
}

func unlockAfterLease(w *world, name string, first, second mutex) {
	w.take(first, "a", 500*time.Millisecond)
	if r := second.take("b", forever, 0); !r.ok || r.err != nil {
		w.t.Fatalf("%v takes the lock that ended: %v, %v", second, r.ok, r.err)
	}
	before := w.only(name, "1")
	if r := first.unlock("a"); !notOwner(r.err) {
		w.t.Errorf("%v unlocks what it had: %v, want not the owner", first, r.err)
	}
	if after := w.only(name, "1"); after != before {
		w.t.Errorf("holder %s, want %s", after, before)
	}
	w.release(second, "b")
}

func javaForcesGo(t *testing.T, on setting) {
	w := newWorld(t, on)
	w.client = w.newClient(redisson.WatchdogTimeout(6 * time.Second)) // so that it need not take long until it looks
	java, golang := w.pair("k")

	// A waiter looks, as nobody tells it of that, and the holder learns that it was taken from it.
	w.take(golang, "a", 0)
	waiter := newGo(t, w.newClient(redisson.WatchdogTimeout(6*time.Second)).Lock("k"))
	p := w.wait(waiter, "b", channelOf("k"), forever)
	forced := java.force()
	if !forced.ok || forced.err != nil {
		t.Errorf("forceUnlock = %v, %v, want true", forced.ok, forced.err)
	}
	w.between("woken after", p.gets().end.Sub(forced.start), 0, soon)
	if r := golang.unlock("a"); !notOwner(r.err) {
		t.Errorf("the former holder unlocks: %v, want not the owner", r.err)
	}
	w.release(waiter, "b")

	// Without a waiter it learns it from its watchdog, which leaves the lock alone.
	w.take(golang, "a", 0)
	held := golang.threads.current("a")
	forced = java.force()
	select {
	case <-held.Done():
		w.between("notified after", time.Since(forced.end), -time.Second, 2*time.Second+soon)
		if cause := context.Cause(held); !errors.Is(cause, lock.ErrLost) {
			t.Errorf("the hold ended with %v, want ErrLost", cause)
		}
	case <-time.After(10 * time.Second):
		t.Error("the holder is not notified")
	}
	w.pass(3 * time.Second)
	if hash := w.hash("k"); len(hash) != 0 {
		t.Errorf("the lock is there again: %v", hash)
	}
	if r := golang.unlock("a"); !notOwner(r.err) {
		t.Errorf("the former holder unlocks: %v, want not the owner", r.err)
	}
	w.clean()
}

func goForcesJava(t *testing.T, on setting) {
	w := newWorld(t, on)
	java, golang := w.pair("k")
	w.take(java, "a", 0)
	p := w.wait(java, "b", channelOf("k"), forever)
	forced := golang.force()
	if !forced.ok || forced.err != nil {
		t.Errorf("ForceUnlock = %v, %v, want true", forced.ok, forced.err)
	}
	w.between("woken after", p.gets().end.Sub(forced.start), 0, soon)
	w.release(java, "b")
	messages := w.messages(channelOf("k"))
	if again := golang.force(); again.ok || again.err != nil {
		t.Errorf("ForceUnlock of a free lock = %v, %v, want false", again.ok, again.err)
	}
	messages.expect()
	if r := java.unlock("a"); !notOwner(r.err) {
		t.Errorf("the former holder unlocks: %v, want not the owner", r.err)
	}
}

func partialUnlock(t *testing.T, on setting) {
	bothWays(t, on, func(w *world, name string, holder, other mutex) {
		w.take(holder, "a", 10*time.Second)
		w.take(holder, "a", 10*time.Second)
		w.release(holder, "a")
		w.between("time to live", other.ttl(), 5*time.Second, 10*time.Second)
		w.release(holder, "a")
	})
}

// shorterLease: what a re-entry sets, Java sets. Go keeps the lease that the outer hold needs.
func shorterLease(w *world, _ string, holder, other mutex) {
	want := 5 * time.Second
	if _, ok := holder.(*goMutex); ok {
		want = 20 * time.Second
	}
	w.take(holder, "a", 20*time.Second)
	w.take(holder, "a", 5*time.Second)
	w.between("time to live", other.ttl(), want-4*time.Second, want)
	w.release(holder, "a")
	w.release(holder, "a")
}

func tryInVain(w *world, name string, holder, other mutex) {
	const limit = 3 * time.Second
	w.take(holder, "a", 0)
	w.wakesWithin(100*time.Millisecond, func() (over, left result) {
		r := w.wait(other, "b", channelOf(name), limit).ends()
		if r.ok || r.err != nil {
			w.t.Errorf("%v tries for %v: %v, %v, want false", other, limit, r.ok, r.err)
		}
		w.between("tried for", r.took(), limit-time.Millisecond, time.Hour)
		return result{start: r.start.Add(limit)}, r
	})
	w.eventually("the channel is left", func() bool { return w.subscribers(channelOf(name)) == 0 })
	w.release(holder, "a")
}

func tryWithSuccess(w *world, name string, holder, other mutex) {
	w.wakes(func() (released, woken result) {
		w.take(holder, "a", 0)
		p := w.wait(other, "b", channelOf(name), 5*time.Second)
		p.waits(time.Second)
		released, woken = w.release(holder, "a"), p.gets()
		w.release(other, "b")
		return released, woken
	})
}

// names: both sides make the same key and the same channel of a name.
func names(t *testing.T, on setting) {
	w := newWorld(t, on)
	for _, tt := range []struct{ name, channel string }{
		{"order:1", "redisson_lock__channel:{order:1}"},
		{"{tag}:x", "redisson_lock__channel:{tag}:x"},
		{"a:{b}:c", "redisson_lock__channel:a:{b}:c"},
		{"x{y", "redisson_lock__channel:x{y"},
		{"x}y", "redisson_lock__channel:{x}y}"},
		{"{}", "redisson_lock__channel:{}"},
		{"Größe 锁 🔑", "redisson_lock__channel:{Größe 锁 🔑}"},
		{"line\nquote\"percent%41", "redisson_lock__channel:{line\nquote\"percent%41}"},
		{strings.Repeat("long", 50), "redisson_lock__channel:{" + strings.Repeat("long", 50) + "}"},
	} {
		java, golang := w.pair(tt.name)
		for _, side := range [][2]mutex{{java, golang}, {golang, java}} {
			holder, waiter := side[0], side[1]
			w.take(holder, "a", 0)
			if keys := w.rdb.Keys(t.Context(), "*").Val(); !slices.Equal(keys, []string{tt.name}) {
				t.Errorf("%v locks %q: keys %q", holder, tt.name, keys)
			}
			p := w.wait(waiter, "b", tt.channel, forever)
			var channels []string
			w.eventually(fmt.Sprintf("%v waits for %q at %q:", waiter, tt.name, tt.channel), func() bool {
				channels = slices.DeleteFunc(w.rdb.PubSubChannels(t.Context(), "*").Val(), func(c string) bool { // those of this package
					return strings.HasPrefix(c, "latchkey_client:") || strings.HasPrefix(c, tt.channel+":")
				})
				return slices.Equal(channels, []string{tt.channel})
			}, &channels)
			released := w.release(holder, "a")
			w.between("woken after", p.gets().end.Sub(released.start), 0, soon)
			w.release(waiter, "b")
			w.clean()
		}
	}
}
