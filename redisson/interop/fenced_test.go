package interop

import (
	"sync"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/redisson"
)

// fencedScenarios are those of the fenced lock.
var fencedScenarios = []scenario{
	{name: "43_fencing_tokens", play: fencingTokens},
	{name: "43_counter_with_an_end", play: counterWithAnEnd},
	{name: "spin_lock", play: spin},
}

// fencingTokens: both sides count up one number, with each acquire and never otherwise.
func fencingTokens(t *testing.T, on setting) {
	w := newWorld(t, on)
	f := w.fence("k")
	f.latest(0)
	for range 5 {
		f.javaTakes(1)
		f.javaTakes(2)
		f.refused(f.golang)
		w.release(f.java, "a")
		f.latest(f.last)
		w.release(f.java, "a")
		f.goTakes(1)
		f.goTakes(2)
		f.refused(f.java)
		w.release(f.golang, "a")
		w.release(f.golang, "a")
		f.latest(f.last)
	}
	for _, m := range []mutex{f.java, f.golang} { // takes without a token count all the same
		w.take(m, "a", 0)
		f.last++
		f.latest(f.last)
		if r := f.golang.force(); !r.ok || r.err != nil {
			t.Errorf("ForceUnlock = %v, %v; want true", r.ok, r.err)
		}
		f.latest(f.last)
		w.take(m, "b", 0)
		f.last++
		if r := f.java.force(); !r.ok || r.err != nil {
			t.Errorf("forceUnlock = %v, %v; want true", r.ok, r.err)
		}
		f.latest(f.last)
	}
	if ttl := w.rdb.TTL(t.Context(), "redisson_lock_token:{k}").Val(); ttl != -1 {
		t.Errorf("the counter has a time to live of %v", ttl)
	}
}

// counterWithAnEnd: a counter that Go does not keep for ever is one for Java as well. Java leaves its end as it is.
func counterWithAnEnd(t *testing.T, on setting) {
	w := newWorld(t, on)
	w.client = w.newClient(redisson.FencingTokenTTL(2 * time.Hour))
	f := w.fence("k")
	left := func(from, to time.Duration) {
		t.Helper()
		w.between("the counter is kept for", w.rdb.PTTL(t.Context(), "redisson_lock_token:{k}").Val(), from, to)
	}
	f.javaTakes(1)
	w.release(f.java, "a")
	left(-2, -1)
	f.goTakes(1)
	w.release(f.golang, "a")
	left(2*time.Hour, 2*time.Hour+20*time.Second)
	w.rdb.PExpire(t.Context(), "redisson_lock_token:{k}", time.Minute)
	f.javaTakes(1)
	w.release(f.java, "a")
	left(50*time.Second, time.Minute)
	f.goTakes(1)
	w.release(f.golang, "a")
	left(2*time.Hour, 2*time.Hour+20*time.Second)
}

// fence is a fenced lock seen from both sides.
type fence struct {
	w      *world
	name   string
	java   *javaMutex
	golang *goMutex
	l      *redisson.FencedLock
	mu     sync.Mutex
	last   int64 // token
}

func (w *world) fence(name string) *fence {
	l := w.client.FencedLock(name)
	return &fence{w: w, name: name, java: newJavaMutex(w.t, w.java, step{"getFencedLock", name}), golang: newGo(w.t, l), l: l}
}

// grows expects the thread that holds the lock to have a token above the last one.
func (f *fence) grows(m mutex, thread string) {
	token, ok := f.l.Token(f.golang.threads.current(thread))
	if m == mutex(f.java) {
		var n float64
		n, ok = f.java.call("", "getToken").Value.(float64)
		token = int64(n)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if !ok || token <= f.last {
		f.w.t.Errorf("%v holds %s with token %d, %v, after %d", m, f.name, token, ok, f.last)
	}
	f.last = token
}

func (f *fence) javaTakes(count int) {
	f.w.t.Helper()
	f.last++
	if token := f.java.get("a", "tryLockAndGetToken", 1000, 20000, "MILLISECONDS"); token != float64(f.last) {
		f.w.t.Errorf("Java takes it with token %v, want %d", token, f.last)
	}
	f.check(f.java, count)
}

func (f *fence) goTakes(count int) {
	f.w.t.Helper()
	f.last++
	f.w.take(f.golang, "a", 20*time.Second)
	if token, ok := f.l.Token(f.golang.threads.current("a")); token != f.last || !ok {
		f.w.t.Errorf("Go takes it with token %v, %v, want %d", token, ok, f.last)
	}
	f.check(f.golang, count)
}

func (f *fence) check(m mutex, count int) {
	f.w.t.Helper()
	f.latest(f.last)
	if got := m.count("a"); got != count {
		f.w.t.Errorf("%v counts %d, want %d", m, got, count)
	}
}

// refused: a try in vain uses up no token.
func (f *fence) refused(m mutex) {
	f.w.t.Helper()
	f.w.refused(m, "b")
	f.latest(f.last)
}

// latest expects both sides to know the last token.
func (f *fence) latest(want int64) {
	f.w.t.Helper()
	if got := f.java.get("", "getToken"); got != float64(want) {
		f.w.t.Errorf("getToken = %v, want %d", got, want)
	}
	if got := must[int64](f.w.t)(f.l.LastToken(f.w.t.Context())); got != want {
		f.w.t.Errorf("LastToken = %v, want %d", got, want)
	}
}

// spin: a spin lock is passed on without a message.
func spin(t *testing.T, on setting) {
	w := newWorld(t, on)
	java, golang := newJavaMutex(t, w.java, step{"getSpinLock", "k"}), newGo(t, w.client.SpinLock("k"))
	messages := w.everything()
	for _, side := range [][2]mutex{{java, golang}, {golang, java}} {
		holder, waiter := side[0], side[1]
		w.take(holder, "a", 0)
		w.refused(waiter, "b")
		p := begin(t, waiter.String()+" spins", func() result { return waiter.take("b", forever, 0) })
		p.waits(500 * time.Millisecond)
		if n := w.rdb.PubSubChannels(t.Context(), "redisson*").Val(); len(n) != 0 {
			t.Errorf("channels %q", n)
		}
		released := w.release(holder, "a")
		w.between("had after", p.gets().end.Sub(released.start), 0, soon)
		w.release(waiter, "b")
	}
	if r := golang.force(); r.ok || r.err != nil {
		t.Errorf("ForceUnlock of a free lock = %v, %v", r.ok, r.err)
	}
	messages.expect()
	messages.close()
	w.counts(2, 100, java, golang)
	w.clean()
}
