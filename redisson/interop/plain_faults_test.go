package interop

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// waiterCutOff: the message of the release is lost with the connection that it would have come on.
func waiterCutOff(t *testing.T, on setting) {
	w := newWorld(t, on)
	java, _ := w.pair("k")
	proxy := w.server.Front(t)
	golang := newGo(t, newClient(t, w.server.Client(t, func(o *redis.Options) { o.Addr = proxy.Addr })).Lock("k"))
	w.wakesWithin(time.Second, func() (back, woken result) {
		w.take(java, "a", 0)
		p := w.wait(golang, "b", channelOf("k"), forever)
		p.waits(100 * time.Millisecond)
		proxy.Freeze()
		w.release(java, "a")
		p.waits(100 * time.Millisecond)
		proxy.Drop()
		back.start = time.Now()
		proxy.Thaw()
		woken = p.gets()
		w.release(golang, "b")
		return back, woken
	})
	w.clean()
}

// waiterIsCancelled: a waiter of Go leaves when its context ends, and the lock of Java as it is.
func waiterIsCancelled(t *testing.T, on setting) {
	w := newWorld(t, on)
	java, golang := w.pair("k")
	w.take(java, "a", 0)
	leaves := func(ctx context.Context, end func() time.Time, want error) (ended, left result) {
		p := w.beginAt(channelOf("k"), "Go waits", func() result { return golang.takeUnder(ctx, "b", forever, 0) })
		ended.start = end()
		if left = p.ends(); left.ok || !errors.Is(left.err, want) {
			t.Errorf("Go waits under a context that ends: %v, %v; want %v", left.ok, left.err, want)
		}
		return ended, left
	}
	w.wakes(func() (ended, left result) {
		ctx, cancel := context.WithCancel(t.Context())
		return leaves(ctx, func() time.Time { defer cancel(); return time.Now() }, context.Canceled)
	})
	w.wakes(func() (ended, left result) {
		deadline := time.Now().Add(2 * time.Second)
		ctx, cancel := context.WithDeadline(t.Context(), deadline)
		defer cancel()
		return leaves(ctx, func() time.Time { return deadline }, context.DeadlineExceeded)
	})
	w.eventually("the channel is left", func() bool { return w.subscribers(channelOf("k")) == 0 })
	w.only("k", "1")
	w.release(java, "a")
	w.clean()
}

// differentWatchdogs: each side renews by its own watchdog's timeout and respects the other's.
func differentWatchdogs(t *testing.T, on setting) {
	w := newWorld(t, on)
	w.java = w.newJava(map[string]any{"lockWatchdogTimeout": 5000})
	java, golang := w.pair("k")
	for range 2 {
		w.take(java, "a", 0)
		for range 8 {
			w.between("time to live of Java's hold", golang.ttl(), time.Second, 5*time.Second)
			w.refused(golang, "b")
			w.pass(time.Second)
		}
		w.release(java, "a")
		w.take(golang, "b", 0)
		for range 8 {
			w.between("time to live of Go's hold", java.ttl(), 15*time.Second, 30*time.Second)
			w.refused(java, "a")
			w.pass(time.Second)
		}
		w.release(golang, "b")
	}
}

// renewalOfMany: of 250 locks of one client 10 are taken away. The others are there when their first lease would be over.
func renewalOfMany(t *testing.T, on setting) {
	w := newWorld(t, on)
	java, golang := make([]*javaMutex, 250), make([]*goMutex, 250)
	for i := range golang {
		java[i], golang[i] = w.pair("k" + strconv.Itoa(i))
		w.take(golang[i], "a", 0)
	}
	for i := 0; i < 250; i += 25 {
		if r := java[i].force(); !r.ok {
			t.Errorf("forceUnlock of k%d = %v, %v, want true", i, r.ok, r.err)
		}
	}
	w.pass(35 * time.Second)
	for i, m := range golang {
		held := m.threads.current("a")
		if gone := i%25 == 0; gone != (held.Err() != nil) {
			t.Errorf("the context of k%d: %v", i, held.Err())
		} else if locked := java[i].locked(); locked == gone {
			t.Errorf("k%d is locked: %v", i, locked)
		}
		if r := m.unlock("a"); notOwner(r.err) != (i%25 == 0) {
			t.Errorf("unlock of k%d: %v", i, r.err)
		}
	}
	w.clean()
}

// repeatedRelease: the answer to Go's release is lost, so Go sends it again. By then, Java has the lock.
func repeatedRelease(t *testing.T, on setting) {
	w := newWorld(t, on)
	java, _ := w.pair("k")
	proxy := w.server.Front(t)
	golang := newGo(t, newClient(t, w.server.Client(t, func(o *redis.Options) { o.Addr = proxy.Addr })).Lock("k"))
	w.take(golang, "a", 0) // so that the server knows the scripts
	w.release(golang, "a")
	messages := w.messages(channelOf("k"))
	for range 5 {
		w.take(golang, "a", 0)
		p := w.wait(java, "b", channelOf("k"), forever)
		proxy.CutReply("evalsha", 1)
		released := w.release(golang, "a")
		if proxy.Cuts() != 0 {
			t.Fatal("no answer was lost")
		}
		w.between("woken after", p.gets().end.Sub(released.start), 0, soon)
		messages.expect("0")
		w.only("k", "1")
		w.release(java, "b")
		messages.expect("0")
	}
	messages.close()
	w.clean()
}

// equalThreads: a number of a thread means nothing without the client that it belongs to.
func equalThreads(t *testing.T, on setting) {
	w := newWorld(t, on)
	java, golang := w.pair("k")
	w.take(golang, "a", 0)
	number := threadOf(w.only("k", "1")) // a long, as Java's are: no thread has it, and whoever gives it in Java means one of its own
	id := must[int64](t)(strconv.ParseInt(number, 10, 64))
	for _, tt := range []struct {
		thread, method string
		args           []any
	}{
		{"", "isHeldByThread", []any{id}},
		{"a", "isHeldByCurrentThread", nil},
	} {
		if got := java.get(tt.thread, tt.method, tt.args...); got != false {
			t.Errorf("%s%v = %v, want false", tt.method, fmt.Sprint(tt.args...), got)
		}
	}
	if n := java.count("a"); n != 0 {
		t.Errorf("getHoldCount = %d, want 0", n)
	}
	w.refused(java, "a")
	if r := java.unlock("a"); !notOwner(r.err) {
		t.Errorf("unlock = %v, want not the owner", r.err)
	}
	w.release(golang, "a")
	w.clean()
}

// threadOf is the part of a holder after the client's id.
func threadOf(holder string) string { return holder[strings.LastIndex(holder, ":")+1:] }
