package redisson_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson"
	"github.com/redis/go-redis/v9"
)

// What many callers cost a server that is slow, and a process whose server is silent.

// A server that is far away is asked no more often than one that is near, and over no more connections.
func TestLatencyCostsNoQuestions(t *testing.T) {
	const callers, rounds, oneWay = 64, 2, 100 * time.Millisecond
	for _, tt := range modes[:4] {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t)
			p, admin := s.Front(t), s.Client(t)
			open := func() *redisson.Client {
				return onClient(t, s.Client(t, func(o *redis.Options) { o.PoolSize = 32 }, tt.change, func(o *redis.Options) { o.Addr = p.Addr }))
			}
			c := open()
			round := func() {
				var all sync.WaitGroup
				for i := range callers {
					all.Go(func() { release(t, acquire(t.Context(), t, c, lock.Request{Key: fmt.Sprint("k", i), Wait: -1})) })
				}
				all.Wait()
			}
			count := func() int {
				before, _ := commands(t, admin)
				for range rounds {
					round()
				}
				after, _ := commands(t, admin)
				return after - before
			}
			round() // loads the scripts
			near := count()
			p.Delay(oneWay)
			c = open()
			round()                                                            // makes the connections
			far, dialed := 0, 1                                                // of the last round
			for try := 0; try < 5 && (10*far > 11*near || dialed > 0); try++ { // a machine that stands still has something asked again
				_, before := p.Connections()
				far = count()
				_, after := p.Connections()
				dialed = after - before
			}
			if 10*far > 11*near || dialed > 0 {
				t.Errorf("%d commands and %d connections with a latency of %v, and %d commands without", far, dialed, 2*oneWay, near)
			}
		})
	}
}

// Callers who have gone leave nothing behind but what a connection is still busy with, however long Redis is silent.
func TestCancelledCallersLeaveNoGoroutines(t *testing.T) {
	const pool, callers = 10, 1000
	for _, tt := range modes[:4] {
		t.Run(tt.name, func(t *testing.T) {
			s := redistest.Start(t)
			c := onClient(t, s.Client(t, func(o *redis.Options) { o.PoolSize = pool }, tt.change))
			mustUnlock(t, c.Lock("k"), mustLock(t, c.Lock("k")))
			before := runtime.NumGoroutine()
			s.Pause(t)
			defer s.Resume(t)
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			var all sync.WaitGroup
			for i := range callers {
				all.Go(func() {
					if err := ignoring(c.Lock(fmt.Sprint("k", i)).Lock(ctx)); !errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("Lock = %v, want the end of its context", err)
					}
				})
			}
			left := make(chan struct{})
			go func() { all.Wait(); close(left) }()
			select {
			case <-left:
			case <-time.After(time.Second):
				t.Error("some callers have not left a second after the end of their context")
			}
			for start := time.Now(); runtime.NumGoroutine() > before+pool && time.Since(start) < time.Second; <-time.After(5 * time.Millisecond) {
			}
			if n := runtime.NumGoroutine() - before; n > pool {
				t.Errorf("%d goroutines are left with a pool of %d connections", n, pool)
			}
			s.Resume(t)
			all.Wait()
			mustUnlock(t, c.Lock("k"), mustLock(t, c.Lock("k")))
		})
	}
}
