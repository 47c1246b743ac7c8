package redisson_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson"
)

const (
	// cyclesVariable says how many cycles TestRedLockServersKilled makes.
	cyclesVariable = "LATCHKEY_TEST_REDLOCK_CYCLES"
	defaultCycles  = 300

	redPrograms   = 3 // with five clients each
	redGoroutines = 2 // of each program
	redLease      = time.Second
	redWait       = 20 * time.Second
)

// One or two servers of five are killed at any moment, again and again, while several programs take and give back the
// lock: there are never two holders, and nobody fails to get it.
//
// A server that comes back has forgotten its locks. As the algorithm demands, it stays down for longer than a lease, so
// that nobody counts on what it has forgotten.
//
// The full length takes minutes:
//
//	LATCHKEY_TEST_REDLOCK_CYCLES=10000 go test -count=1 -v -timeout 30m -run TestRedLockServersKilled ./redisson
func TestRedLockServersKilled(t *testing.T) {
	t.Parallel()
	cycles := defaultCycles
	if text := os.Getenv(cyclesVariable); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			t.Fatalf("%s=%q, want a number above 0", cyclesVariable, text)
		}
		cycles = n
	}
	r := newRed(t)
	s := &redSection{t: t}
	s.left.Store(int64(cycles))
	var workers sync.WaitGroup
	for range redPrograms {
		l := r.lock(redisson.WatchdogTimeout(redLease))
		for range redGoroutines {
			workers.Go(func() {
				for s.left.Add(-1) >= 0 {
					s.cycle(l)
				}
			})
		}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		workers.Wait()
	}()
	start := time.Now()
	kills := r.killUntil(done)
	s.report(cycles, kills, time.Since(start))
	r.expectFree(all()...)
}

// killUntil kills one or two servers at a time and returns how many it killed.
func (r *red) killUntil(done <-chan struct{}) (kills int) {
	for {
		if ended(done, rand.N(500*time.Millisecond)) {
			return kills
		}
		victims := rand.Perm(len(r.servers))[:1+rand.IntN(2)]
		for _, i := range victims {
			r.servers[i].Kill(r.tb)
			ended(done, rand.N(20*time.Millisecond))
		}
		kills += len(victims)
		<-time.After(redLease + redLease/10 + rand.N(300*time.Millisecond))
		r.each((*redistest.Server).Restart, victims...)
	}
}

// ended reports whether done is closed within d.
func ended(done <-chan struct{}, d time.Duration) bool {
	select {
	case <-done:
		return true
	case <-time.After(d):
		return false
	}
}

// redSection is guarded by the lock and nothing else.
type redSection struct {
	t      *testing.T
	left   atomic.Int64 // cycles
	holder atomic.Pointer[context.Context]
	count  atomic.Int64 // read and written in two steps

	silences atomic.Int64

	mu       sync.Mutex
	waits    []time.Duration
	counted  int64
	lost     int // while in the section
	unsure   int // Unlocks that did not reach enough servers
	overlaps int
}

func (s *redSection) cycle(l *redisson.RedLock) {
	lease := time.Duration(rand.IntN(2)) * redLease // 0 or redLease
	start := time.Now()
	held, ok, err := l.TryLock(context.Background(), redWait, lease)
	for err != nil && time.Since(start) < redWait { // the machine stood still for as long as a call waits for an answer
		s.silences.Add(1)
		held, ok, err = l.TryLock(context.Background(), redWait, lease)
	}
	waited := time.Since(start)
	if !ok || err != nil {
		s.t.Errorf("TryLock = %v, %v after %v", ok, err, waited)
		return
	}
	overlap, counted := s.enter(held)
	err = l.Unlock(held)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waits = append(s.waits, waited)
	if overlap {
		s.overlaps++
	}
	switch {
	case errors.Is(err, lock.ErrLost):
		s.lost++
	case err != nil:
		s.unsure++
	}
	if counted {
		s.counted++
	}
}

// enter is the critical section. A holder that was notified of its loss is none any more.
func (s *redSection) enter(held context.Context) (overlap, counted bool) {
	before := s.holder.Swap(&held)
	overlap = before != nil && (*before).Err() == nil && held.Err() == nil
	n := s.count.Load()
	if rand.IntN(4) == 0 {
		<-time.After(rand.N(2 * time.Millisecond))
	}
	runtime.Gosched()
	if held.Err() == nil {
		s.count.Store(n + 1)
		counted = true
	}
	s.holder.CompareAndSwap(&held, nil)
	return overlap, counted
}

func (s *redSection) report(cycles, kills int, took time.Duration) {
	slices.Sort(s.waits)
	n := len(s.waits)
	if n == 0 {
		s.t.Fatal("no cycle succeeded")
	}
	s.t.Logf("%d of %d cycles in %v, %d servers killed; waits: median %v, 99%% %v, longest %v; lost %d, unlock without enough answers %d",
		n, cycles, took.Round(time.Millisecond), kills, s.waits[n/2], s.waits[n*99/100], s.waits[n-1], s.lost, s.unsure)
	if s.overlaps != 0 || s.count.Load() != s.counted {
		s.t.Errorf("%d times two holders; counter = %d after %d increments", s.overlaps, s.count.Load(), s.counted)
	}
	if silences := s.silences.Load(); n != cycles || silences > int64(cycles)/20 {
		s.t.Errorf("%d of %d cycles succeeded, and %d calls had no answer", n, cycles, silences)
	}
}
