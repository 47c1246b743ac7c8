package redisson_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/redisson"
	"github.com/redis/go-redis/v9"
)

// brittle returns a client behind a proxy, with the scripts of semaphores loaded, and one before it.
func brittle(t *testing.T, change func(*redis.Options), timeout time.Duration) (behind, direct *redisson.Client, p *redistest.Proxy) {
	t.Helper()
	srv := redistest.Any(t)
	p = srv.Front(t)
	behind = onClient(t, srv.Client(t, change, func(o *redis.Options) { o.Addr = p.Addr }), redisson.Timeout(timeout))
	direct = newClient(t, srv)
	s, x := behind.Semaphore("warm"), behind.PermitExpirableSemaphore("warmer")
	must(t, true)(s.TrySetPermits(t.Context(), 1))
	must(t, true)(s.TryAcquire(t.Context(), 1, 0))
	check(t, s.Release(t.Context(), 1))
	check(t, s.AddPermits(t.Context(), 1))
	must(t, 2)(s.DrainPermits(t.Context()))
	check(t, x.AddPermits(t.Context(), 1))
	id, err := x.Acquire(t.Context(), time.Minute)
	check(t, err)
	check(t, x.Release(t.Context(), id))
	return behind, direct, p
}

// Each script loses its answer after the server ran it, and is repeated: nothing is counted twice.
func TestSemaphoreAnswerLost(t *testing.T) {
	t.Parallel()
	eachSetup(t, func(t *testing.T, change func(*redis.Options)) {
		c, _, p := brittle(t, change, 10*time.Second)
		s, ctx := c.Semaphore("s"), t.Context()
		for _, tt := range []struct {
			name string
			do   func() (int, error)
			want int // permits after it
		}{
			{"TrySetPermits", func() (int, error) { ok, err := s.TrySetPermits(ctx, 5); return btoi(ok), err }, 5},
			{"TryAcquire", func() (int, error) { ok, err := s.TryAcquire(ctx, 2, 10*time.Second); return btoi(ok), err }, 3}, // repeats as long
			{"Acquire", func() (int, error) { return 1, s.Acquire(ctx, 1) }, 2},
			{"Release", func() (int, error) { return 1, s.Release(ctx, 3) }, 5},
			{"AddPermits", func() (int, error) { return 1, s.AddPermits(ctx, -4) }, 1},
			{"DrainPermits", func() (int, error) { return s.DrainPermits(ctx) }, 0},
		} {
			p.CutReply("evalsha", 2)
			if got, err := tt.do(); got != 1 || err != nil {
				t.Errorf("%s = %v, %v", tt.name, got, err)
			}
			if p.Cuts() != 0 {
				t.Errorf("%s: answers were not cut", tt.name)
			}
			must(t, tt.want)(s.AvailablePermits(ctx))
		}
	})
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// No repetition gets an answer either. The acquire fails, and what it took is given back.
func TestSemaphoreAcquireInDoubtLeavesNothing(t *testing.T) {
	t.Parallel()
	eachSetup(t, func(t *testing.T, change func(*redis.Options)) {
		c, direct, p := brittle(t, change, time.Second)
		s := newSemaphore(t, direct, 3)
		p.CutReply("evalsha", 1000)
		if err := c.Semaphore("s").Acquire(t.Context(), 2); err == nil {
			t.Fatal("Acquire succeeded without an answer")
		}
		p.CutReply("", 0)
		within(t, 5*time.Second, "the permits are back", func() bool { n, _ := s.AvailablePermits(t.Context()); return n == 3 })
		p.CutReply("evalsha", 1000)
		if n, err := c.Semaphore("s").DrainPermits(t.Context()); err == nil {
			t.Fatalf("DrainPermits = %d without an answer", n)
		}
		p.CutReply("", 0)
		within(t, 5*time.Second, "the permits are back", func() bool { n, _ := s.AvailablePermits(t.Context()); return n == 3 })
	})
}

// A change that is not answered goes on without its caller, and is made once.
func TestSemaphoreReleaseInDoubt(t *testing.T) {
	t.Parallel()
	eachSetup(t, func(t *testing.T, change func(*redis.Options)) {
		c, direct, p := brittle(t, change, time.Second)
		s := newSemaphore(t, direct, 0)
		p.CutReply("evalsha", 1000)
		if err := c.Semaphore("s").Release(t.Context(), 2); !errors.Is(err, redisson.ErrPending) {
			t.Fatalf("Release = %v, want ErrPending", err)
		}
		p.CutReply("", 0)
		p.Freeze()
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if err := c.Semaphore("s").Release(ctx, 5); !errors.Is(err, redisson.ErrPending) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Release = %v, want ErrPending and the end of its context", err)
		}
		p.Thaw()
		within(t, 10*time.Second, "all are released", func() bool { n, _ := s.AvailablePermits(t.Context()); return n == 7 })
		check(t, c.Close()) // waits for what goes on
		must(t, 7)(s.AvailablePermits(t.Context()))
	})
}

// The caller leaves while its question is under way, which then takes permits.
func TestSemaphoreCallerGoneBeforeTheAnswer(t *testing.T) {
	t.Parallel()
	eachSetup(t, func(t *testing.T, change func(*redis.Options)) {
		c, direct, p := brittle(t, change, time.Second)
		s := newSemaphore(t, direct, 3)
		check(t, direct.PermitExpirableSemaphore("three").SetPermits(t.Context(), 3))
		p.Freeze()
		for what, acquire := range map[string]func(ctx context.Context) error{
			"Acquire":             func(ctx context.Context) error { return c.Semaphore("s").Acquire(ctx, 2) },
			"Acquire of a permit": func(ctx context.Context) error { return second(c.PermitExpirableSemaphore("warmer").Acquire(ctx, 0)) },
			"AcquireN": func(ctx context.Context) error {
				return second(c.PermitExpirableSemaphore("three").AcquireN(ctx, 3, 0))
			},
		} {
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			if err := acquire(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s = %v, want the end of its context", what, err)
			}
		}
		p.Thaw()
		check(t, c.Close()) // waits for what goes on
		must(t, 3)(s.AvailablePermits(t.Context()))
		must(t, 1)(direct.PermitExpirableSemaphore("warmer").AvailablePermits(t.Context()))
		must(t, 3)(direct.PermitExpirableSemaphore("three").AvailablePermits(t.Context()))
	})
}

// The caller's context ends while the answer is on its way.
func TestSemaphoreCanceledWithTheAnswer(t *testing.T) {
	eachSetup(t, func(t *testing.T, change func(*redis.Options)) {
		srv := redistest.Any(t)
		direct := newClient(t, srv)
		s, x := newSemaphore(t, direct, 3), direct.PermitExpirableSemaphore("x")
		must(t, true)(x.TrySetPermits(t.Context(), 1))
		for _, acquire := range []func(context.Context, *redisson.Client) error{
			func(ctx context.Context, c *redisson.Client) error { return c.Semaphore("s").Acquire(ctx, 2) },
			func(ctx context.Context, c *redisson.Client) error {
				_, err := c.PermitExpirableSemaphore("x").Acquire(ctx, 0)
				return err
			},
		} {
			ctx, cancel := context.WithCancel(t.Context())
			rdb := srv.Client(t, change)
			rdb.AddHook(hook{func(cmd redis.Cmder) {
				if strings.HasPrefix(cmd.Name(), "eval") && cmd.Err() == nil {
					cancel()
				}
			}})
			c := onClient(t, rdb)
			if err := acquire(ctx, c); !errors.Is(err, context.Canceled) {
				t.Errorf("Acquire = %v, want canceled", err)
			}
			check(t, c.Close()) // waits for what goes on
		}
		must(t, 3)(s.AvailablePermits(t.Context()))
		must(t, 1)(x.AvailablePermits(t.Context()))
	})
}

func TestSynchronizersSurviveScriptFlush(t *testing.T) {
	srv := redistest.Start(t)
	rdb, ctx := srv.Client(t), t.Context()
	s := newSemaphore(t, newClient(t, srv), 1)
	check(t, s.Acquire(ctx, 1))
	got := acquireAsync(newClient(t, srv).Semaphore("s"), 1)
	eventually(t, "waiter subscribes", func() bool { return len(subscriptions(t, rdb)) == 1 })
	check(t, rdb.ScriptFlush(ctx).Err())
	check(t, s.Release(ctx, 1))
	expectDone(t, got)
}

// Each script arrives once more, when all is over: the permits were given back, or the acquire has failed and was undone.
func TestDelayedAttempts(t *testing.T) {
	t.Parallel()
	for _, lost := range []bool{false, true} {
		t.Run(fmt.Sprintf("lost=%v", lost), func(t *testing.T) {
			srv := redistest.Any(t)
			ctx, direct := t.Context(), newClient(t, srv)
			permits, sem := newPermits(t, direct, 1), direct.Semaphore("n")
			must(t, true)(sem.TrySetPermits(ctx, 1))
			check(t, permits.Release(ctx, mustPermit(t, permits, time.Minute))) // loads the scripts
			check(t, sem.Acquire(ctx, 1))
			check(t, sem.Release(ctx, 1))
			latch := direct.CountDownLatch("l")
			check(t, latch.CountDown(ctx))
			rdb, h := srv.Client(t), &recorder{lose: lost}
			rdb.AddHook(h)
			c := onClient(t, rdb)
			id, err := c.PermitExpirableSemaphore("s").Acquire(ctx, 0)
			if err == nil {
				err = c.PermitExpirableSemaphore("s").Release(ctx, id)
			}
			semErr := c.Semaphore("n").Acquire(ctx, 1)
			if semErr == nil {
				semErr = c.Semaphore("n").Release(ctx, 1)
			}
			downErr := c.CountDownLatch("l").CountDown(ctx) // a latch that does not exist yet
			if (err != nil) != lost || (semErr != nil) != lost || errors.Is(downErr, redisson.ErrPending) != lost {
				t.Errorf("errors %v, %v and %v", err, semErr, downErr)
			}
			h.set(false)
			check(t, c.Close()) // waits for what goes on
			must(t, true)(latch.TrySetCount(ctx, 5))
			late := srv.Client(t)
			for _, args := range slices.Backward(h.scripts) { // those that take something come last
				check(t, late.Do(ctx, args...).Err())
			}
			if len(h.scripts) < 5 {
				t.Errorf("%d scripts were recorded", len(h.scripts))
			}
			must(t, 1)(permits.AvailablePermits(ctx))
			must(t, 1)(sem.AvailablePermits(ctx))
			must(t, int64(5))(latch.Count(ctx))
		})
	}
}

// recorder keeps what scripts were sent, and may lose them before they reach Redis.
type recorder struct {
	mu      sync.Mutex
	lose    bool
	scripts [][]any
}

func (r *recorder) set(lose bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lose = lose
}

func (r *recorder) DialHook(next redis.DialHook) redis.DialHook { return next }
func (r *recorder) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if !strings.HasPrefix(cmd.Name(), "eval") {
			return next(ctx, cmd)
		}
		r.mu.Lock()
		lose := r.lose
		r.scripts = append(r.scripts, cmd.Args())
		r.mu.Unlock()
		if lose {
			return errLost
		}
		return next(ctx, cmd)
	}
}
func (r *recorder) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

var errLost = errors.New("connection reset on the way")
