package redisson_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson"
	"github.com/redis/go-redis/v9"
)

// Locks that are passed on from one goroutine of a process to the next.

// crowd has n goroutines take the lock again and again, until stop is closed, and calls inside under it. It returns when all of
// them have left.
func crowd(t *testing.T, n int, l locker, stop <-chan struct{}, inside func(held context.Context)) {
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				held := mustLock(t, l)
				inside(held)
				mustUnlock(t, l, held)
			}
		})
	}
	all.Wait()
}

func TestPassedOnLocksCostFewCommands(t *testing.T) {
	s := redistest.Start(t)
	admin, c := s.Client(t), newClient(t, s)
	l := c.Lock("k")
	mustUnlock(t, l, mustLock(t, l))      // loads the scripts
	stop, turns := make(chan struct{}), 0 // turns is guarded by the lock
	before, _ := commands(t, admin)
	crowd(t, 64, l, stop, func(context.Context) {
		if turns++; turns == 2000 {
			close(stop)
		}
	})
	after, _ := commands(t, admin)
	if n := float64(after-before) / float64(turns); n > 1.3 {
		t.Errorf("%.2f commands for each of %d turns, want 1.1", n, turns)
	}
}

// However busy the goroutines of a process are with a lock, others get it.
func TestOthersGetInWhileLocksArePassedOn(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	cluster := redistest.StartCluster(t, 0)
	type trier interface {
		locker
		TryLock(ctx context.Context, wait, lease time.Duration) (context.Context, bool, error)
	}
	plain := func(c *redisson.Client, key string) trier { return c.Lock(key) }
	single := func(t *testing.T) *redisson.Client { return newClient(t, s) }
	node := func(t *testing.T) *redisson.Client { return member(t, cluster) }
	for _, tt := range []struct {
		name   string
		client func(t *testing.T) *redisson.Client
		lock   func(c *redisson.Client, key string) trier
	}{
		{"subscriber", single, plain},
		{"poller", single, func(c *redisson.Client, key string) trier { return c.SpinLock(key) }},
		{"another kind", single, func(c *redisson.Client, key string) trier { return c.FencedLock(key) }},
		{"cluster", node, plain},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			stop := make(chan struct{})
			var busy sync.WaitGroup
			busy.Go(func() { crowd(t, 64, tt.client(t).Lock(t.Name()), stop, func(context.Context) {}) })
			other := tt.lock(tt.client(t), t.Name())
			for range 5 {
				held, ok, err := other.TryLock(t.Context(), 20*time.Second, 0)
				if err != nil || !ok {
					t.Errorf("TryLock = %v, %v", ok, err)
					break
				}
				mustUnlock(t, other, held)
			}
			close(stop)
			busy.Wait()
		})
	}
}

// Two goroutines that take turns, each away for a moment in between, have nobody in line then. That begins no new streak.
func TestOthersGetInWhileTwoTakeTurns(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	var busy sync.WaitGroup
	var turns atomic.Int32
	two, other := newClient(t, s).Lock("k"), newClient(t, s).Lock("k")
	for range 2 {
		busy.Go(func() {
			for ; turns.Load() >= 0; <-time.After(time.Millisecond) {
				held := mustLock(t, two)
				turns.Add(1)
				<-time.After(4 * time.Millisecond)
				mustUnlock(t, two, held)
			}
		})
	}
	eventually(t, "they take turns", func() bool { return turns.Load() > 3 })
	start := time.Now()
	for range 5 {
		mustUnlock(t, other, mustLock(t, other))
	}
	turns.Store(math.MinInt32)
	busy.Wait()
	if took := ran(start); took > 2*time.Second {
		t.Errorf("another client got the lock 5 times in %v, and a streak lasts for 50ms", took)
	}
}

func TestPassedOnTokensRise(t *testing.T) {
	s := redistest.Start(t)
	l := newClient(t, s).FencedLock("k")
	stop, turns, last := make(chan struct{}), 0, int64(0) // guarded by the lock
	crowd(t, 16, l, stop, func(held context.Context) {
		token, _ := l.Token(held)
		if token <= last {
			t.Errorf("token %d comes after %d", token, last)
		}
		last = token
		if turns++; turns == 500 {
			close(stop)
		}
	})
}

// Who releases under a context that has ended does not stay for the answer. The next one has the lock soon all the same.
func TestReleaseBeforeOneThatLeaves(t *testing.T) {
	t.Parallel()
	c := newClient(t, redistest.Start(t))
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	play := func(leave bool) time.Duration {
		began := time.Now()
		var all sync.WaitGroup
		for i := range 24 {
			all.Go(func() {
				for range 30 {
					h := acquire(t.Context(), t, c, lock.Request{Key: "k", Wait: -1})
					if leave && i%4 == 0 {
						_ = h.Release(ended)
					} else {
						release(t, h)
					}
				}
			})
		}
		all.Wait()
		return time.Since(began)
	}
	stay, leave := play(false), play(true)
	t.Logf("%v where all stay, %v where 180 leave", stay, leave)
	if leave > 10*stay+5*time.Second {
		t.Errorf("180 that left kept the others waiting for %v, which is %v without them", leave, stay)
	}
}

// Locks are taken away by hand while some wait in line and others try beside it, so that one who has just got a lock is beside another
// one that passes.
func TestLocksPassWhileOthersAreTakenAway(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	admin, c := s.Client(t), newClient(t, s)
	stop := make(chan struct{})
	var all sync.WaitGroup
	for i := range 18 {
		all.Go(func() {
			r := lock.Request{Key: "k"}
			if i < 12 {
				r.Wait = -1
			}
			for {
				select {
				case <-stop:
					return
				default:
				}
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				if i%2 == 0 {
					cancel()
					ctx, cancel = context.WithTimeout(t.Context(), rand.N(30*time.Millisecond))
				}
				h, err := c.Acquire(ctx, r)
				cancel()
				switch {
				case err == nil:
					_ = h.Release(t.Context()) // which may have been lost
				case errors.Is(err, lock.ErrLost), i%2 > 0 && errors.Is(err, context.DeadlineExceeded):
					t.Errorf("Acquire = %v", err)
				}
			}
		})
	}
	for end := time.Now().Add(2 * time.Second); time.Now().Before(end); <-time.After(rand.N(1500 * time.Microsecond)) {
		if rand.IntN(2) == 0 {
			check(t, admin.Del(t.Context(), "k").Err())
		} else {
			_, err := c.ForceUnlock(t.Context(), "k")
			check(t, err)
		}
	}
	close(stop)
	all.Wait()
	eventually(t, "nothing is left in Redis", func() bool { return admin.Exists(t.Context(), "k").Val() == 0 })
}

// Waiters give up at any moment, also while a lock is on its way to them. It does not stay with them.
func TestWaitersLeaveWhileLocksArePassedOn(t *testing.T) {
	t.Parallel()
	eachSetup(t, func(t *testing.T, change func(*redis.Options)) {
		s := redistest.Start(t)
		p, admin := s.Front(t), s.Client(t)
		p.Delay(time.Millisecond)
		c := onClient(t, s.Client(t, change, func(o *redis.Options) { o.Addr = p.Addr }))
		var inside atomic.Int32
		var all sync.WaitGroup
		for range 32 {
			all.Go(func() {
				for range 60 {
					ctx, cancel := context.WithTimeout(t.Context(), rand.N(60*time.Millisecond))
					h, err := c.Acquire(ctx, lock.Request{Key: "k", Wait: -1})
					cancel()
					switch {
					case err == nil:
						if inside.Add(1) > 1 {
							t.Error("two holders")
						}
						inside.Add(-1)
						release(t, h)
					case !errors.Is(err, context.DeadlineExceeded):
						t.Errorf("Acquire = %v, want the end of its context", err)
					}
				}
			})
		}
		all.Wait()
		eventually(t, "the lock is not left behind", func() bool { return admin.Exists(t.Context(), "k").Val() == 0 })
		// A question that comes late puts its member into the wake list, which is a hint, and ends by itself.
		const list = "latchkey_wake:{k}"
		if left := keys(t, admin); len(left) > 1 || len(left) == 1 && (left[0] != list || admin.PTTL(t.Context(), list).Val() == -1) {
			t.Errorf("left behind: %q", left)
		}
	})
}

// Several locks that are given back together are there for those who wait in the same process.
func TestReleaseAllWakesTheLine(t *testing.T) {
	c := newClient(t, redistest.Any(t))
	key := t.Name()
	for range 20 {
		hold := acquire(t.Context(), t, c, lock.Request{Key: key})
		next := make(chan lock.Hold)
		for range 2 { // the second one relies on the first
			go func() { next <- acquire(t.Context(), t, c, lock.Request{Key: key, Wait: -1}) }()
		}
		for range 2 {
			<-time.After(5 * time.Millisecond)
			if err := c.ReleaseAll(t.Context(), []lock.Hold{hold}); err != nil {
				t.Fatal(err)
			}
			select {
			case hold = <-next:
			case <-time.After(220 * time.Millisecond):
				t.Fatal("the next one in line did not get the lock within 220ms")
			}
		}
		release(t, hold)
	}
}

// A holder whose lease ends under its work, and one that holds the lock twice, have a line behind them like any other.
func TestLineBehindUnusualHolders(t *testing.T) {
	s := redistest.Any(t)
	c := newClient(t, s, redisson.WatchdogTimeout(2*time.Second))
	l := c.Lock(t.Name())
	hold := func(lease time.Duration) context.Context {
		held, err := l.LockFor(t.Context(), lease)
		if err != nil {
			t.Fatal(err)
		}
		return held
	}
	waiting := func() <-chan context.Context {
		got := lockAsync(t, l)
		eventually(t, "somebody waits", func() bool { return len(subscriptions(t, s.Client(t))) > 0 })
		return got
	}
	t.Run("lease", func(t *testing.T) {
		held := hold(300 * time.Millisecond)
		got := waiting()
		<-held.Done()
		if err := l.Unlock(held); !errors.Is(err, lock.ErrLost) {
			t.Errorf("Unlock = %v, want ErrLost", err)
		}
		expectHeldWithin(t, l, got, 2*time.Second)
	})
	t.Run("re-entrant", func(t *testing.T) {
		outer := hold(0)
		inner, err := l.Lock(outer)
		if err != nil {
			t.Fatal(err)
		}
		got := waiting()
		mustUnlock(t, l, inner)
		select {
		case <-got:
			t.Fatal("the waiter has a lock that its holder has given back in part only")
		case <-time.After(50 * time.Millisecond):
		}
		mustUnlock(t, l, outer)
		expectHeldWithin(t, l, got, 2*time.Second)
	})
	t.Run("forced", func(t *testing.T) {
		held := hold(0)
		got := waiting()
		if ok, err := c.Lock(t.Name()).ForceUnlock(t.Context()); ok || err != nil { // another name
			t.Fatalf("ForceUnlock = %v, %v", ok, err)
		}
		if err := s.Client(t).Del(t.Context(), l.Name()).Err(); err != nil {
			t.Fatal(err)
		}
		<-time.After(60 * time.Millisecond) // a streak would be over
		if err := l.Unlock(held); !errors.Is(err, lock.ErrLost) {
			t.Errorf("Unlock = %v, want ErrLost", err)
		}
		expectHeldWithin(t, l, got, 2*time.Second)
	})
}

// A head of a line counts on its predecessor to release the lock, and asks by itself after 250ms. It need not wait for that where the
// predecessor has lost the lock or keeps it, of which no message tells.
func TestNextInLineNeedNotWaitForAMessage(t *testing.T) {
	s := redistest.Any(t)
	c, other, admin := newClient(t, s), newClient(t, s), s.Client(t)
	r := lock.Request{Key: t.Name(), Wait: -1}
	for name, leave := range map[string]func(lock.Hold){
		"lost": func(h lock.Hold) {
			if err := admin.Del(t.Context(), r.Key).Err(); err != nil {
				t.Error(err)
			}
			_ = h.(interface {
				Extend(context.Context, time.Duration) error
			}).Extend(t.Context(), time.Minute) // finds out
			if err := h.Release(t.Context()); !errors.Is(err, lock.ErrLost) {
				t.Errorf("Release = %v, want ErrLost", err)
			}
		},
		"kept": func(h lock.Hold) {
			check(t, h.(interface {
				Keep(context.Context, time.Duration) error
			}).Keep(t.Context(), 20*time.Millisecond))
		},
	} {
		t.Run(name, func(t *testing.T) {
			shortest := time.Hour
			for range 5 { // the machine may be busy
				h, got := acquire(t.Context(), t, other, r), make(chan lock.Hold, 2)
				for range 2 {
					go func() { got <- acquire(t.Context(), t, c, r) }()
				}
				<-time.After(30 * time.Millisecond)
				release(t, h)
				h = <-got
				start := time.Now()
				leave(h)
				release(t, <-got)
				shortest = min(shortest, time.Since(start))
			}
			if shortest > 200*time.Millisecond {
				t.Errorf("the next one had to wait for %v", shortest)
			}
		})
	}
}

// A lock that was lost does not pass: its release says so, and the next one takes a new one.
func TestLostLocksDoNotPass(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c, admin := newClient(t, s), s.Client(t)
	h, got := acquire(t.Context(), t, c, lock.Request{Key: "k"}), make(chan lock.Hold, 1)
	go func() { got <- acquire(t.Context(), t, c, lock.Request{Key: "k", Wait: -1}) }()
	<-time.After(20 * time.Millisecond)
	check(t, admin.FlushAll(t.Context()).Err())
	if err := h.Release(t.Context()); !errors.Is(err, lock.ErrLost) {
		t.Errorf("Release = %v, want ErrLost", err)
	}
	next := <-got
	check(t, next.Context().Err())
	release(t, next)
}

// A lock that passes has the lease that the next hold wants, whatever is left of the one before.
func TestPassedOnLocksHaveTheirOwnLease(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c, other := newClient(t, s), newClient(t, s)
	for i, tt := range []struct{ first, second time.Duration }{
		{300 * time.Millisecond, 0}, {0, 300 * time.Millisecond}, {300 * time.Millisecond, time.Minute}, {time.Minute, 300 * time.Millisecond},
	} {
		t.Run(fmt.Sprint(tt.first, " to ", tt.second), func(t *testing.T) {
			t.Parallel()
			key, got := fmt.Sprint("k", i), make(chan lock.Hold)
			first := acquire(t.Context(), t, c, lock.Request{Key: key, Lease: tt.first})
			go func() { got <- acquire(t.Context(), t, c, lock.Request{Key: key, Wait: -1, Lease: tt.second}) }()
			<-time.After(10 * time.Millisecond)
			release(t, first)
			second := <-got
			<-time.After(400 * time.Millisecond)
			_, err := other.Acquire(t.Context(), lock.Request{Key: key})
			if ends := tt.second == 300*time.Millisecond; ends != (second.Context().Err() != nil) || ends != (err == nil) {
				t.Errorf("after 400ms the hold ended with %v, and another client's Acquire with %v", second.Context().Err(), err)
			}
		})
	}
}

// Where a token can't be counted, the one who wants it hears of that, and not the one who releases the lock.
func TestReleaseWhileTheNextTokenCannotBeCounted(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c, admin := newClient(t, s), s.Client(t)
	for i := range 20 {
		key, failed := fmt.Sprint("k", i), make(chan error)
		h := acquire(t.Context(), t, c, lock.Request{Key: key, Kind: lock.Fenced})
		go func() {
			_, err := c.Acquire(t.Context(), lock.Request{Key: key, Kind: lock.Fenced, Wait: -1})
			failed <- err
		}()
		<-time.After(5 * time.Millisecond)
		check(t, admin.Set(t.Context(), "redisson_lock_token:{"+key+"}", "x", 0).Err())
		release(t, h)
		if err := <-failed; !errors.Is(err, lock.ErrRefused) {
			t.Errorf("Acquire = %v, want ErrRefused", err)
		}
		if n := admin.Exists(t.Context(), key).Val(); n != 0 {
			t.Error("the lock is still there")
		}
	}
}

// A user who may run no scripts any more hears of that from a release, also with somebody in line.
func TestReleaseWithoutTheRight(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	admin := s.Client(t)
	check(t, admin.Do(t.Context(), "acl", "setuser", "u", "on", ">p", "~*", "&*", "+@all").Err())
	c := onClient(t, s.Client(t, func(o *redis.Options) { o.Username, o.Password = "u", "p" }))
	h := acquire(t.Context(), t, c, lock.Request{Key: "k", Kind: lock.Fenced})
	failed := make(chan error)
	go func() {
		_, err := c.Acquire(t.Context(), lock.Request{Key: "k", Kind: lock.Fenced, Wait: -1})
		failed <- err
	}()
	<-time.After(20 * time.Millisecond)
	check(t, admin.Do(t.Context(), "acl", "setuser", "u", "-@scripting").Err())
	if err := h.Release(t.Context()); !errors.Is(err, lock.ErrRefused) {
		t.Errorf("Release = %v, want ErrRefused", err)
	}
	if err := <-failed; !errors.Is(err, lock.ErrRefused) {
		t.Errorf("Acquire = %v, want ErrRefused", err)
	}
}

// A process is killed while its goroutines pass a lock on. Others have it after its lease.
func TestProcessDiesWhileLocksArePassedOn(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	child := exec.Command(os.Args[0], "-test.run=^TestPassingChild$", "-test.timeout=1m")
	child.Env = append(os.Environ(), stressAddr+"="+s.Addr)
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = errors.Join(child.Process.Kill(), child.Wait()) }()
	admin := s.Client(t)
	eventually(t, "the process is busy", func() bool {
		n, _ := admin.Get(t.Context(), "turns").Int()
		return n > 100
	})
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	l := newClient(t, s).Lock("k")
	held, ok, err := l.TryLock(t.Context(), 10*time.Second, 0)
	if err != nil || !ok {
		t.Fatalf("TryLock = %v, %v", ok, err)
	}
	mustUnlock(t, l, held)
}

// TestPassingChild is that process. Alone it has nothing to do.
func TestPassingChild(t *testing.T) {
	addr := os.Getenv(stressAddr)
	if addr == "" {
		return
	}
	s := &redistest.Server{Addr: addr}
	rdb := s.Client(t)
	crowd(t, 8, onClient(t, s.Client(t), redisson.WatchdogTimeout(time.Second)).Lock("k"), nil, func(held context.Context) {
		rdb.Incr(held, "turns")
	})
}
