package interop

import (
	"fmt"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/redisson"
	"github.com/redis/go-redis/v9"
)

// redScenarios are those of one lock on three servers that know nothing of each other.
var redScenarios = []scenario{
	{name: "54_red_lock", play: redLock, long: true},
	{name: "54_red_lock_counter", play: redCounter, long: true},
	{name: "54_red_lock_without_a_server", play: redWithout, long: true},
}

// red is a world for each server.
type red []*world

func newRed(t *testing.T, on setting) red {
	t.Helper()
	return red{newWorld(t, on), newWorld(t, on), newWorld(t, on)}
}

// pair is one RedLock seen from both sides.
func (r red) pair(name string) (java *javaMutex, golang *goMutex) {
	path := step{"getRedLock"}
	var members []redisson.Member
	for _, w := range r {
		path = append(path, of(w.java, step{"getLock", name}))
		members = append(members, w.client.Lock(name))
	}
	l := must[*redisson.RedLock](r[0].t)(redisson.NewRedLock(members...))
	return newJavaMutex(r[0].t, r[0].java, path), newGo(r[0].t, l)
}

// holders waits until so many servers have the lock k, with one holder each: who takes it goes on when the majority has answered.
func (r red) holders(want int) {
	r[0].t.Helper()
	var seen []string
	r[0].eventually(fmt.Sprintf("%d servers have the lock", want), func() bool {
		seen = seen[:0]
		for i, w := range r {
			hash := w.hash("k")
			if len(hash) > 1 {
				w.t.Fatalf("k = %v at server %d, want one holder", hash, i)
			}
			for holder := range hash {
				seen = append(seen, fmt.Sprintf("%d: %s", i, holder))
			}
		}
		return len(seen) == want
	}, &seen)
}

func (r red) clean() {
	for _, w := range r {
		w.clean()
	}
}

// redLock: the two sides exclude each other, with a lease and without, and one wakes the other.
func redLock(t *testing.T, on setting) {
	r := newRed(t, on)
	w := r[0]
	java, golang := r.pair("k")
	for _, side := range [][2]mutex{{java, golang}, {golang, java}} {
		holder, other := side[0], side[1]
		for _, lease := range []time.Duration{0, 20 * time.Second} {
			w.take(holder, "a", lease)
			r.holders(3)
			w.refused(other, "b")
			p := begin(t, fmt.Sprintf("%v waits for %v", other, holder), func() result { return other.take("b", forever, 0) })
			p.waits(2 * time.Second)
			released := w.release(holder, "a")
			w.between("had after", p.gets().end.Sub(released.start), 0, time.Second+soon)
			w.refused(holder, "a")
			w.release(other, "b")
			r.clean()
		}

		// A majority is enough, and necessary.
		single, _ := r[1].pair("k")
		w.take(single, "s", 0)
		w.take(holder, "a", 0)
		r.holders(3)
		w.refused(other, "b")
		w.release(holder, "a")
		r.holders(1)
		second, _ := r[2].pair("k")
		w.take(second, "s", 0)
		w.refused(holder, "a")
		w.refused(other, "b")
		w.eventually("the third server is free", func() bool { return len(r[0].hash("k")) == 0 })
		w.release(single, "s")
		w.release(second, "s")
		r.clean()
	}
}

func redCounter(t *testing.T, on setting) {
	r := newRed(t, on)
	java, golang := r.pair("k")
	r[0].counts(2, 25, java, golang)
	r.clean()
}

// redWithout: it goes on without one of the servers, but not without two.
func redWithout(t *testing.T, on setting) {
	r := newRed(t, on)
	for _, w := range r {
		w.java = w.newJava(map[string]any{singleServer: map[string]any{"retryAttempts": 0, "timeout": 300, "connectTimeout": 300}})
		rdb := w.server.Client(t, func(o *redis.Options) { o.DialerRetries, o.MaxRetries = 1, -1 })
		w.client = newClient(t, rdb, redisson.Timeout(300*time.Millisecond))
	}
	w := r[0]
	java, golang := r.pair("k")
	r[2].server.Kill(t)
	up := r[:2]
	for _, side := range [][2]mutex{{java, golang}, {golang, java}} {
		holder, other := side[0], side[1]
		w.take(holder, "a", 0)
		up.holders(2)
		w.refused(other, "b")
		if r := holder.unlock("a"); r.err != nil {
			t.Errorf("%v gives back the lock: %v", holder, r.err)
		}
		w.eventually("nobody has it", func() bool { return len(up[0].hash("k"))+len(up[1].hash("k")) == 0 })
	}
	r[1].server.Kill(t)
	for _, m := range []mutex{java, golang} {
		if got := m.take("a", 0, 0); got.ok {
			t.Errorf("%v has the lock of a minority", m)
		}
		w.eventually("nothing is left at the minority", func() bool { return len(w.hash("k")) == 0 })
	}
}
