package pubsub

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
)

// expectLive checks whether the subscription is live once everything that happens now has happened.
func expectLive(t *testing.T, s *Subscription, want bool) {
	t.Helper()
	synctest.Wait()
	if _, live := s.Changed(); live != want {
		t.Errorf("live = %v, want %v", live, want)
	}
}

// expectTrace compares what the server saw since the last call.
func expectTrace(t *testing.T, f *fakeServer, want ...string) {
	t.Helper()
	synctest.Wait()
	if got := f.takeTrace(); !slices.Equal(got, want) {
		t.Errorf("the server saw\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}

// at is a line of a trace: d after the start and the moment in which the subscriber gathers what is wanted.
func at(d time.Duration, what string) string { return fmt.Sprint(d+gather, " ", what) }

// hinted reports whether the channel from Changed was closed.
func hinted(changed <-chan struct{}) bool {
	synctest.Wait()
	select {
	case <-changed:
		return true
	default:
		return false
	}
}

func TestHints(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeServer()
		s := f.subscriber(t)
		sub := s.Subscribe("a")
		other := s.Subscribe("b")
		changed, live := sub.Changed()
		if live {
			t.Error("live before anything was sent")
		}
		time.Sleep(time.Second)
		if !hinted(changed) {
			t.Error("a confirmed subscription is no hint")
		}
		expectLive(t, sub, true)
		expectTrace(t, f, at(0, "subscribe a b"))

		changed, _ = sub.Changed()
		changedOther, _ := other.Changed()
		f.publish("a")
		if !hinted(changed) || hinted(changedOther) {
			t.Error("a message must hint to its own channel")
		}
		if changed, _ = sub.Changed(); hinted(changed) {
			t.Error("one message was two hints")
		}

		f.drop()
		if !hinted(changed) || !hinted(changedOther) {
			t.Error("a broken connection is no hint")
		}
		expectLive(t, sub, false)
		time.Sleep(time.Second)
		expectLive(t, sub, true)
		expectLive(t, other, true)
		expectTrace(t, f, "1s closed", at(1050*time.Millisecond, "subscribe a b"))
		if n := len(f.dialled()); n != 2 {
			t.Errorf("%d connections were made, want one and one after it broke", n)
		}
	})
}

// Waiters that come at the same moment share a command, and who of them came first does not show in it.
func TestSameMomentSameCommand(t *testing.T) {
	for range 10 {
		synctest.Test(t, func(t *testing.T) {
			f := newFakeServer()
			s := f.subscriber(t)
			var all sync.WaitGroup
			for i := range 9 {
				all.Go(func() {
					defer s.Subscribe(fmt.Sprint("k", i)).Close()
					time.Sleep(time.Second)
				})
			}
			all.Wait()
			time.Sleep(time.Second)
			expectTrace(t, f, at(0, "subscribe k0 k1 k2 k3 k4 k5 k6 k7 k8"),
				at(time.Second+Linger, "unsubscribe k0 k1 k2 k3 k4 k5 k6 k7 k8"))
		})
	}
}

func TestLinger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeServer()
		s := f.subscriber(t)
		s.Subscribe("other")
		for range 5 { // the waiters of a hot lock
			sub := s.Subscribe("hot")
			time.Sleep(500 * time.Millisecond)
			expectLive(t, sub, true)
			sub.Close()
			sub.Close() // does nothing
			time.Sleep(250*time.Millisecond - time.Nanosecond)
		}
		expectTrace(t, f, at(0, "subscribe hot other"))
		last := time.Since(f.start)
		sub := s.Subscribe("hot")
		expectLive(t, sub, true)
		sub.Close()
		time.Sleep(time.Second)
		expectTrace(t, f, at(last+250*time.Millisecond, "unsubscribe hot"))
		if n, _ := s.size(); n != 1 {
			t.Errorf("%d channels are left, want one", n)
		}
	})
}

// A channel that is wanted again while its cancellation is on the way is live when the new subscription is confirmed.
func TestSubscribeAfterUnsubscribe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeServer()
		s := f.subscriber(t)
		sub := s.Subscribe("k")
		time.Sleep(time.Second)
		f.set(&f.silent, true)
		sub.Close()
		time.Sleep(Linger + gather)
		expectTrace(t, f, at(0, "subscribe k"), at(time.Second+Linger, "unsubscribe k"))

		sub = s.Subscribe("k")
		expectLive(t, sub, false)
		time.Sleep(gather)
		expectLive(t, sub, false)
		expectTrace(t, f, at(time.Second+Linger+gather, "subscribe k"))
		f.reply(array("unsubscribe", "k", 0))
		expectLive(t, sub, false)
		f.reply(array("subscribe", "k", 1))
		expectLive(t, sub, true)
	})
}

func TestSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeServer()
		s := f.subscriber(t)
		sub := s.Subscribe("k")
		time.Sleep(3 * time.Second)
		f.publish("k")
		time.Sleep(14 * time.Second)
		expectTrace(t, f, at(0, "subscribe k"), "8s ping", "13s ping")
		f.set(&f.silent, true)
		time.Sleep(6*time.Second - time.Nanosecond) // until 23s, almost
		expectLive(t, sub, true)
		time.Sleep(time.Nanosecond)
		expectLive(t, sub, false)
		expectTrace(t, f, "18s ping", "23s closed")
	})
}

// What is sent is no sign of life.
func TestSilenceWhileWaitersComeAndGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeServer()
		s := f.subscriber(t)
		sub := s.Subscribe("k")
		time.Sleep(time.Second)
		expectLive(t, sub, true)
		f.set(&f.silent, true)
		for i := range 9 {
			waiter := s.Subscribe(fmt.Sprint("k", i))
			time.Sleep(time.Second)
			waiter.Close()
		}
		time.Sleep(gather)
		expectLive(t, sub, false)
		if trace := f.takeTrace(); !slices.Contains(trace, "5.000000001s ping") || !slices.Contains(trace, "10.000000001s closed") {
			t.Errorf("the server saw %q, want a ping after 5s and the end after 10s", trace)
		}
	})
}

func TestIdleConnectionRetires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeServer()
		s := f.subscriber(t)
		sub := s.Subscribe("k")
		time.Sleep(time.Second)
		sub.Close()
		time.Sleep(idle)
		synctest.Wait()
		if _, known := s.size(); known != 1 || f.connections() != 1 {
			t.Fatalf("%d connections of %d before the time", f.connections(), known)
		}
		time.Sleep(silence + Linger)
		synctest.Wait()
		if _, known := s.size(); known != 0 || f.connections() != 0 {
			t.Fatalf("%d connections of %d are left", f.connections(), known)
		}
		sub = s.Subscribe("k")
		time.Sleep(time.Second)
		expectLive(t, sub, true)
	})
}

// A server that refuses connections is asked less and less often, however many channels are wanted meanwhile.
func TestReconnectPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeServer()
		f.set(&f.refuses, true)
		s := f.subscriber(t)
		sub := s.Subscribe("k")
		for i := range 100 {
			time.Sleep(100 * time.Millisecond)
			s.Subscribe(fmt.Sprint("k", i))
		}
		var pauses []time.Duration
		dials := f.dialled()
		for i, d := range dials[1:] {
			pauses = append(pauses, (d - dials[i]).Round(time.Millisecond))
		}
		const ms = time.Millisecond
		want := []time.Duration{50 * ms, 100 * ms, 200 * ms, 400 * ms, 800 * ms, 1600 * ms, 2000 * ms, 2000 * ms, 2000 * ms}
		if !slices.Equal(pauses, want) {
			t.Errorf("pauses between the attempts: %v, want %v", pauses, want)
		}
		f.set(&f.refuses, false)
		time.Sleep(reconnectCap)
		expectLive(t, sub, true)
	})
}

// Neither Subscribe nor Changed waits for a connection that is being made, and what is wanted meanwhile is sent after it.
func TestSlowHandshake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeServer()
		f.set(&f.silent, true)
		s := f.subscriber(t)
		first := s.Subscribe("a")
		time.Sleep(time.Second)
		second := s.Subscribe("b")
		first.Close()
		expectLive(t, first, false)
		expectLive(t, second, false)
		if took := time.Since(f.start); took != time.Second {
			t.Errorf("Subscribe or Changed waited: %v", took-time.Second)
		}
		f.set(&f.silent, false)
		time.Sleep(silence)
		expectLive(t, second, true)
		expectTrace(t, f, "5.000000001s closed", "5.050000002s subscribe b")
	})
}

// Close interrupts whatever is under way, and waits only for what can't be interrupted.
func TestClose(t *testing.T) {
	never := func(_ *fakeServer, o *redis.Options) {
		o.Dialer = func(ctx context.Context, _, _ string) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
	}
	stubborn := func(f *fakeServer, o *redis.Options) {
		o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			time.Sleep(time.Minute)
			return f.dial(ctx, network, addr)
		}
	}
	for _, tt := range []struct {
		name  string
		setUp func(*fakeServer, *redis.Options)
		want  time.Duration
	}{
		{"connected", func(*fakeServer, *redis.Options) {}, 0},
		{"silent in the handshake", func(f *fakeServer, _ *redis.Options) { f.silent = true }, 0},
		{"deaf in the handshake", func(f *fakeServer, _ *redis.Options) { f.deaf = true }, 0},
		{"without timeouts", func(f *fakeServer, o *redis.Options) { f.silent, o.ReadTimeout, o.WriteTimeout = true, -1, -1 }, 0},
		{"with deadlines", func(f *fakeServer, o *redis.Options) { f.silent, o.ContextTimeoutEnabled = true, true }, 0},
		{"in a dialler", never, 0},
		{"in a dialler that does not heed its context", stubborn, closeTimeout},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFakeServer()
				s := f.subscriber(t, func(o *redis.Options) { tt.setUp(f, o) })
				sub := s.Subscribe("k")
				time.Sleep(time.Second)
				changed, _ := sub.Changed()
				start := time.Now()
				s.Close()
				if took := time.Since(start); took != tt.want {
					t.Errorf("Close took %v, want %v", took, tt.want)
				}
				if tt.want == 0 && !hinted(changed) {
					t.Error("Close leaves a waiter asleep")
				}
				expectLive(t, sub, false)
				time.Sleep(time.Hour)
				synctest.Wait()
				if f.connections() != 0 && !f.deaf {
					t.Errorf("%d connections are left", f.connections())
				}
			})
		})
	}
}

// After Close, waiters may still come and go, and get nothing.
func TestSubscribeAfterClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeServer()
		s := f.subscriber(t)
		before := s.Subscribe("before")
		time.Sleep(time.Second)
		s.Close()
		after := s.Subscribe("after")
		time.Sleep(time.Hour)
		expectLive(t, before, false)
		expectLive(t, after, false)
		if n := len(f.dialled()); n != 1 {
			t.Errorf("%d connections were made, want the one before Close", n)
		}
		before.Close()
		after.Close()
		if n, _ := s.size(); n != 0 {
			t.Errorf("%d channels are left", n)
		}
		s.Close() // does nothing
	})
}

// A server that does not read any more holds up neither Subscribe nor Close.
func TestStuckWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeServer()
		stuck, closed := new(atomic.Bool), make(chan struct{})
		s := f.subscriber(t, func(o *redis.Options) {
			o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
				conn, err := f.dial(ctx, network, addr)
				return &stuckConn{Conn: conn, stuck: stuck, closed: closed}, err
			}
		})
		sub := s.Subscribe("a")
		time.Sleep(time.Second)
		expectLive(t, sub, true)
		stuck.Store(true)
		start := time.Now()
		s.Subscribe("b")
		time.Sleep(time.Second)
		s.Close()
		if took := time.Since(start); took != time.Second {
			t.Errorf("Subscribe and Close took %v more than they may", took-time.Second)
		}
	})
}

// stuckConn is a connection whose buffer is full while stuck is true.
type stuckConn struct {
	net.Conn
	stuck  *atomic.Bool
	closed chan struct{}
	once   sync.Once
}

func (c *stuckConn) Write(b []byte) (int, error) {
	if c.stuck.Load() {
		<-c.closed
		return 0, net.ErrClosed
	}
	return c.Conn.Write(b)
}

func (c *stuckConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}
