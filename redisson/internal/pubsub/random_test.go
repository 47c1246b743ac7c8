package pubsub

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Waiters come and go, in whole milliseconds so that many act at one moment, while connections break, the server falls
// silent, and refuses connections. Whoever was live is woken by the next message. In the end all is healed, and nothing is
// left over. A schedule that is run again sends the same commands at the same times.
func TestRandomUse(t *testing.T) {
	for seed := range uint64(20) {
		var first []string
		for run := range 3 {
			var trace []string
			synctest.Test(t, func(t *testing.T) { trace = useAtRandom(t, seed) })
			if t.Failed() {
				t.Fatalf("seed %d", seed)
			}
			if run == 0 {
				first = trace
			} else if !slices.Equal(trace, first) {
				t.Fatalf("seed %d: two runs differ:\n%q\n%q", seed, first, trace)
			}
		}
	}
}

func useAtRandom(t *testing.T, seed uint64) (trace []string) {
	f := newFakeServer()
	s := f.subscriber(t)
	var all sync.WaitGroup
	for i := range 8 {
		r := rand.New(rand.NewPCG(seed, uint64(i)))
		all.Go(func() {
			for range 60 {
				time.Sleep(time.Duration(r.IntN(300)) * time.Millisecond)
				sub := s.Subscribe(fmt.Sprint("k", r.IntN(5)))
				time.Sleep(time.Duration(r.IntN(100)) * time.Millisecond)
				sub.Close()
			}
		})
	}
	all.Go(func() { harm(f, rand.New(rand.NewPCG(seed, 100))) })
	all.Go(func() { listen(t, f, s) })
	all.Wait()

	time.Sleep(2*silence + reconnectCap)
	sub := s.Subscribe("k0")
	time.Sleep(time.Second)
	expectLive(t, sub, true)
	sub.Close()
	time.Sleep(time.Second)
	synctest.Wait()
	if channels, connections := s.size(); channels != 0 || connections != 1 {
		t.Errorf("%d channels and %d connections are left, want none and one", channels, connections)
	}
	if n := f.subscribed(); n != 0 {
		t.Errorf("%d channels are still subscribed at the server", n)
	}
	return f.takeTrace()
}

// harm does harm for ten seconds, at moments of its own: a dial at the moment in which a server goes down may go either way.
func harm(f *fakeServer, r *rand.Rand) {
	for time.Since(f.start) < 10*time.Second {
		time.Sleep(time.Duration(r.Int64N(int64(time.Second))))
		switch r.IntN(4) {
		case 0:
			f.drop()
		case 1:
			f.set(&f.refuses, true)
		case 2:
			f.set(&f.refuses, false)
		case 3:
			f.set(&f.silent, true)
			time.Sleep(time.Duration(r.Int64N(int64(12 * time.Second))))
			f.set(&f.silent, false)
			f.drop() // what was swallowed is not answered later
		}
	}
	f.set(&f.refuses, false)
}

// listen expects each message that the server sends while a subscription is live.
func listen(t *testing.T, f *fakeServer, s *Subscriber) {
	sub := s.Subscribe("mine")
	defer sub.Close()
	for range 500 {
		time.Sleep(23 * time.Millisecond)
		changed, live := sub.Changed()
		if !live {
			continue
		}
		f.publish("mine")
		select {
		case <-changed:
		case <-time.After(2 * silence): // the message may have gone to a connection that was broken
			t.Error("a message was missed")
		}
	}
}
