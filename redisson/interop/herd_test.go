package interop

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson"
)

// herdScenarios have clients of Go, which wake one of theirs, beside clients of Redisson that all wake up.
var herdScenarios = []scenario{
	{name: "64_Go_and_Java_have_their_shares", play: shares},
	{name: "65_Go_gives_up_beside_Java", play: givingUp},
}

// herdVersions are those in which they are played.
var herdVersions = []string{newest, "3.45.1"}

// contender takes the lock "hot" once, has it for a moment, and gives it back. It reports whether it had it.
type contender struct {
	take    func(wait time.Duration) bool
	release func()
}

func (w *world) goContender(kind lock.Kind) contender {
	c := w.newClient()
	var h lock.Hold
	return contender{func(wait time.Duration) (ok bool) {
		var err error
		h, err = c.Acquire(context.Background(), lock.Request{Key: "hot", Kind: kind, Wait: wait})
		return err == nil
	}, func() {
		if err := h.Release(context.Background()); err != nil {
			w.t.Error(err)
		}
	}}
}

func (w *world) javaContender(kind lock.Kind) contender {
	method := "getLock"
	if kind == lock.Fenced {
		method = "getFencedLock"
	}
	m := newJavaMutex(w.t, w.newJava(nil), step{method, "hot"})
	return contender{func(time.Duration) bool { return m.take("a", forever, 0).ok }, func() {
		if r := m.unlock("a"); r.err != nil {
			w.t.Error(r.err)
		}
	}}
}

// contend has them contend for d, and returns how often each had the lock, and its longest wait.
func contend(all []contender, d time.Duration, wait func(i int) time.Duration) (turns []int, longest []time.Duration) {
	turns, longest = make([]int, len(all)), make([]time.Duration, len(all))
	end := time.Now().Add(d)
	var wg sync.WaitGroup
	for i, c := range all {
		wg.Go(func() {
			began := time.Now()
			for time.Now().Before(end) {
				if !c.take(wait(i)) {
					continue
				}
				longest[i] = max(longest[i], time.Since(began))
				turns[i]++
				time.Sleep(time.Millisecond)
				c.release()
				time.Sleep(2 * time.Millisecond)
				began = time.Now()
			}
		})
	}
	wg.Wait()
	return turns, longest
}

// shares: beside 4 clients of Redisson, as many of Go as there may be have half of their share at least, and so have those of Redisson; and none has
// less than a third of its own.
func shares(t *testing.T, on setting) {
	for _, kind := range []lock.Kind{lock.Exclusive, lock.Fenced} {
		for _, n := range []int{2, 16, 64} {
			if n != 16 && (kind == lock.Fenced || on.version != newest) || kind == lock.Fenced && on.version != newest {
				continue
			}
			w := newWorld(t, on)
			var all []contender
			for range n {
				all = append(all, w.goContender(kind))
			}
			for range 4 {
				all = append(all, w.javaContender(kind))
			}
			contend(all, 500*time.Millisecond, func(int) time.Duration { return -1 }) // connections, scripts, and Java's compiler
			turns, longest := contend(all, 3*time.Second, func(int) time.Duration { return -1 })
			golang, java := 0, 0
			for i, k := range turns {
				if i < n {
					golang += k
				} else {
					java += k
				}
			}
			due := float64(golang+java) / float64(n+4)
			t.Logf("%v, %d of Go: %.2f of their share, Java %.2f; least %.2f and %.2f; longest waits %v and %v", kind, n, float64(golang)/due/float64(n), float64(java)/due/4,
				float64(slices.Min(turns[:n]))/due, float64(slices.Min(turns[n:]))/due, slices.Max(longest[:n]), slices.Max(longest[n:]))
			if float64(golang) < due*float64(n)/2 || float64(java) < due*4/2 || float64(slices.Min(turns)) < due/3 {
				t.Errorf("%v, %d of Go and 4 of Java: %v", kind, n, turns)
			}
		}
	}
}

// givingUp: clients of Go wait for moments only, so those that are woken are often gone. Java is not left asleep on a free lock.
func givingUp(t *testing.T, on setting) {
	w := newWorld(t, on)
	var all []contender
	for range 8 {
		all = append(all, w.goContender(lock.Exclusive))
	}
	for range 2 {
		all = append(all, w.javaContender(lock.Exclusive))
	}
	turns, longest := contend(all, 5*time.Second, func(i int) time.Duration {
		if i >= 8 {
			return forever
		}
		return time.Duration(1+rand.N(12)) * time.Millisecond
	})
	t.Log(turns, longest)
	if longest := slices.Max(longest[8:]); longest > 2*time.Second || slices.Min(turns[8:]) == 0 {
		t.Errorf("Java waited %v; turns %v", longest, turns)
	}
}

// playHerds plays them in those versions, and in clusters with both kinds of channels.
func playHerds(t *testing.T) {
	for _, version := range herdVersions {
		for _, s := range herdScenarios {
			run(t, s.name+"_"+version, setting{version: version}, s)
		}
	}
	last := herdScenarios[1]
	run(t, "cluster_"+last.name+"_sharded", setting{version: newest, cluster: true}, last)
	run(t, "cluster_"+last.name+"_classic", setting{version: newest, cluster: true, mode: redisson.ShardedOff, javaMode: "OFF"}, last)
}
