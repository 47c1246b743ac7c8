package redisson_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson"
	"github.com/redis/go-redis/v9"
)

// lockAsync waits for the lock in a goroutine. It calls again where Redis was silent for as long as a call by default waits for an answer, as a
// machine that stands still makes a failover take.
func lockAsync(t *testing.T, l *redisson.Lock) <-chan context.Context {
	got := make(chan context.Context, 1)
	go func() {
		for start := time.Now(); ; {
			began := time.Now()
			held, err := l.Lock(context.Background())
			if err == nil {
				got <- held
				return
			}
			switch {
			case t.Context().Err() != nil: // the test has ended, and with it its servers
				return
			case time.Since(began) < redisson.DefaultTimeout, time.Since(start) > waits:
				t.Error(err)
				return
			}
		}
	}()
	return got
}

func expectHeld(t *testing.T, l *redisson.Lock, got <-chan context.Context) {
	t.Helper()
	expectHeldWithin(t, l, got, waits/2)
}

func expectHeldWithin(t *testing.T, l *redisson.Lock, got <-chan context.Context, limit time.Duration) {
	t.Helper()
	select {
	case held := <-got:
		mustUnlock(t, l, held)
	case <-time.After(limit):
		t.Fatalf("the waiter did not get the lock within %v", limit)
	}
}

// waits is how long a waiter would sleep if nothing woke it: until the holder's lease or its own cap is over.
const waits = redisson.DefaultWatchdogTimeout / 3

func TestReleaseWakesAnotherProcess(t *testing.T) {
	s := redistest.Any(t)
	rdb := s.Client(t)
	holder, waiter := newClient(t, s).Lock("k"), newClient(t, s).Lock("k")
	held := mustLock(t, holder)
	got := lockAsync(t, waiter)
	eventually(t, "waiter subscribes", func() bool { return len(subscriptions(t, rdb)) == 1 })
	mustUnlock(t, holder, held)
	expectHeld(t, waiter, got)
	eventually(t, "nothing is left", func() bool { return len(keys(t, rdb))+len(subscriptions(t, rdb)) == 0 })
}

// hook runs a function behind each script of a client, before its answer is seen.
type hook struct{ after func(cmd redis.Cmder) }

func (h hook) DialHook(next redis.DialHook) redis.DialHook { return next }
func (h hook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		h.after(cmd)
		return err
	}
}
func (h hook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// The release falls between the failed try and the subscription: its message reaches nobody.
func TestReleaseBeforeSubscription(t *testing.T) {
	s := redistest.Any(t)
	holder := newClient(t, s).Lock("k")
	held := mustLock(t, holder)
	rdb := s.Client(t)
	var once sync.Once
	rdb.AddHook(hook{func(cmd redis.Cmder) {
		if strings.HasPrefix(cmd.Name(), "eval") && cmd.Err() == nil {
			once.Do(func() { mustUnlock(t, holder, held) })
		}
	}})
	waiter := onClient(t, rdb).Lock("k")
	expectHeld(t, waiter, lockAsync(t, waiter))
}

// The connection that would bring the message dies, and the release comes while there is none.
func TestReleaseWithoutPubSub(t *testing.T) {
	s := redistest.Start(t)
	admin := s.Client(t)
	holder, waiter := newClient(t, s).Lock("k"), newClient(t, s).Lock("k")
	held := mustLock(t, holder)
	got := lockAsync(t, waiter)
	eventually(t, "waiter subscribes", func() bool { return len(subscriptions(t, admin)) == 1 })
	if n, err := admin.ClientKillByFilter(t.Context(), "TYPE", "pubsub").Result(); n != 1 || err != nil {
		t.Fatalf("CLIENT KILL = %d, %v", n, err)
	}
	mustUnlock(t, holder, held)
	expectHeld(t, waiter, got)
}

// No subscription at all can be had: the lock is polled.
func TestWaitWithoutPubSub(t *testing.T) {
	s := redistest.Start(t)
	s.Client(t).ACLSetUser(t.Context(), "default", "-subscribe")
	holder, waiter := newClient(t, s).Lock("k"), newClient(t, s).Lock("k")
	held := mustLock(t, holder)
	got := lockAsync(t, waiter)
	mustUnlock(t, holder, held)
	expectHeld(t, waiter, got)
}

func TestWaitSurvives(t *testing.T) {
	for _, tt := range []struct {
		name  string
		fault func(context.Context, *redis.Client) error
	}{
		{"script flush", func(ctx context.Context, rdb *redis.Client) error { return rdb.ScriptFlush(ctx).Err() }},
		{"client kill", func(ctx context.Context, rdb *redis.Client) error {
			return rdb.ClientKillByFilter(ctx, "SKIPME", "yes", "TYPE", "normal").Err()
		}},
		{"client pause", func(ctx context.Context, rdb *redis.Client) error {
			return rdb.ClientPause(ctx, 500*time.Millisecond).Err()
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := redistest.Start(t)
			admin := s.Client(t)
			holder, waiter := newClient(t, s).Lock("k"), newClient(t, s).Lock("k")
			held := mustLock(t, holder)
			got := lockAsync(t, waiter)
			eventually(t, "waiter subscribes", func() bool { return len(subscriptions(t, admin)) == 1 })
			if err := tt.fault(t.Context(), admin); err != nil {
				t.Fatal(err)
			}
			mustUnlock(t, holder, held)
			expectHeld(t, waiter, got)
		})
	}
}

// A holder that died is waited for until its lease ends, and not until the waiter's cap.
func TestWaiterFollowsTheLease(t *testing.T) {
	s := redistest.Any(t)
	rdb := s.Client(t)
	rdb.HSet(t.Context(), "k", "gone:1", 1)
	rdb.PExpire(t.Context(), "k", 700*time.Millisecond)
	l := newClient(t, s).Lock("k")
	start := time.Now()
	held, ok, err := l.TryLock(t.Context(), waits/2, 0)
	if !ok || err != nil {
		t.Fatalf("TryLock = %v, %v", ok, err)
	}
	if d := time.Since(start); d < 600*time.Millisecond {
		t.Errorf("got the lock after %v, before its lease was over", d)
	}
	mustUnlock(t, l, held)
}

func TestBusyTellsTheRemainingLease(t *testing.T) {
	s := redistest.Any(t)
	held := mustLock(t, newClient(t, s).Lock("k"))
	defer held.Done()
	c := newClient(t, s)
	var waiters sync.WaitGroup
	for _, wait := range []time.Duration{0, 50 * time.Millisecond, 50 * time.Millisecond} { // the third is behind the second in line
		waiters.Go(func() {
			_, err := c.Acquire(t.Context(), lock.Request{Key: "k", Wait: wait})
			busy, ok := errors.AsType[*lock.BusyError](err)
			if !ok || !errors.Is(err, lock.ErrBusy) || busy.Remaining < 19*time.Second || busy.Remaining > 30*time.Second || busy.Waited < wait {
				t.Errorf("Acquire with wait %v: %v (%+v), want a BusyError with the remaining lease", wait, err, busy)
			}
		})
	}
	waiters.Wait()
}

func TestCanceledWaiterLeavesNothing(t *testing.T) {
	s := redistest.Any(t)
	rdb := s.Client(t)
	c := newClient(t, s)
	l := c.Lock("k")
	held := mustLock(t, l)
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("client hung up")
	failed := make(chan error)
	go func() {
		_, err := l.Lock(ctx)
		failed <- err
	}()
	eventually(t, "waiter subscribes", func() bool { return len(subscriptions(t, rdb)) == 1 })
	cancel(gone)
	if err := <-failed; !errors.Is(err, gone) {
		t.Errorf("Lock = %v, want the cause of the context", err)
	}
	eventually(t, "the channel is unsubscribed", func() bool { return len(subscriptions(t, rdb)) == 0 })
	mustUnlock(t, l, held)
	if got := keys(t, rdb); len(got) != 0 {
		t.Errorf("keys = %q", got)
	}
}

// commands counts the commands that the server has processed, by name, without those of the test itself.
func commands(tb testing.TB, rdb *redis.Client) (total int, byName map[string]int) {
	tb.Helper()
	byName = map[string]int{}
	all := commandCalls(tb, rdb)
	for _, name := range []string{"evalsha", "eval", "subscribe", "unsubscribe", "ping"} {
		if n, ok := all[name]; ok {
			byName[name] = n
			total += n
		}
	}
	return total, byName
}

// commandCalls is how often the server has run each command, also in scripts.
func commandCalls(tb testing.TB, rdb *redis.Client) map[string]int {
	tb.Helper()
	info, err := rdb.Info(context.Background(), "commandstats").Result()
	if err != nil {
		tb.Fatal(err)
	}
	byName := map[string]int{}
	for _, m := range regexp.MustCompile(`cmdstat_([^:]+):calls=(\d+)`).FindAllStringSubmatch(info, -1) {
		byName[m[1]], _ = strconv.Atoi(m[2])
	}
	return byName
}

func TestUncontendedLockIsTwoCommands(t *testing.T) {
	s := redistest.Start(t)
	rdb := s.Client(t)
	l := newClient(t, s).Lock("k")
	mustUnlock(t, l, mustLock(t, l)) // loads the scripts
	before, _ := commands(t, rdb)
	const rounds = 50
	for range rounds {
		mustUnlock(t, l, mustLock(t, l))
	}
	if after, byName := commands(t, rdb); after-before != 2*rounds {
		t.Errorf("%d commands for %d rounds, want 2 each: %v", after-before, rounds, byName)
	}
}

// However many goroutines wait, one of them asks Redis.
func TestWaitersAreOneContender(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	rdb := s.Client(t)
	holder, c := newClient(t, s).Lock("k"), newClient(t, s)
	held := mustLock(t, holder)
	before, _ := commands(t, rdb)
	const waiters = 200
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	var ended atomic.Int32
	for range waiters {
		all.Go(func() {
			if _, err := c.Lock("k").Lock(ctx); !errors.Is(err, context.Canceled) {
				t.Errorf("Lock = %v, want canceled", err)
			}
			ended.Add(1)
		})
	}
	<-time.After(5 * time.Second)
	after, byName := commands(t, rdb)
	if n := after - before; n >= 20 || n < 2 {
		t.Errorf("%d commands while %d goroutines waited for 5s, want fewer than 20: %v", n, waiters, byName)
	}
	if ended.Load() != 0 {
		t.Error("a waiter ended early")
	}
	cancel()
	all.Wait()
	mustUnlock(t, holder, held)
}

// The goroutines of one process are served in the order in which they came, each at once.
func TestLocalWaitersAreServedInOrder(t *testing.T) {
	s := redistest.Any(t)
	c := newClient(t, s)
	l := c.Lock("k")
	held := mustLock(t, l)
	var order []int // guarded by the lock under test
	var all sync.WaitGroup
	for i := range 20 {
		entered := make(chan struct{})
		all.Go(func() {
			h, err := l.Lock(signalValue(t.Context(), entered))
			if err != nil {
				t.Error(err)
				return
			}
			order = append(order, i)
			mustUnlock(t, l, h)
		})
		<-entered
		<-time.After(20 * time.Millisecond) // entered says that Lock was called, not yet that it is in line
	}
	mustUnlock(t, l, held)
	all.Wait()
	for i, got := range order {
		if got != i {
			t.Fatalf("served in the order %v", order)
		}
	}
}

// signalValue is a context that closes entered when it is asked for a value, which Acquire does first of all.
func signalValue(ctx context.Context, entered chan struct{}) context.Context {
	return &signalContext{Context: ctx, entered: entered}
}

type signalContext struct {
	context.Context
	once    sync.Once
	entered chan struct{}
}

func (c *signalContext) Value(key any) any {
	c.once.Do(func() { close(c.entered) })
	return c.Context.Value(key)
}

// One connection is enough for any number of goroutines.
func TestSmallPool(t *testing.T) {
	s := redistest.Any(t)
	c := onClient(t, s.Client(t, func(o *redis.Options) { o.PoolSize = 1; o.PoolTimeout = 30 * time.Second }), redisson.Timeout(30*time.Second))
	var all sync.WaitGroup
	for i := range 100 {
		all.Go(func() {
			l := c.Lock(fmt.Sprint("k", i%5))
			held, err := l.Lock(t.Context())
			if err != nil {
				t.Errorf("Lock: %v", err)
				return
			}
			mustUnlock(t, l, held)
		})
	}
	all.Wait()
}

func TestServerDown(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	_ = l.Close() // nobody answers there now
	// By itself, go-redis dials five times in 400ms. On a busy machine that can be more than a caller waits who tries once.
	rdb := redis.NewClient(&redis.Options{Addr: addr, DialerRetries: 1})
	defer rdb.Close()
	c := onClient(t, rdb)
	for _, wait := range []time.Duration{0, time.Second, -1} {
		start := time.Now()
		_, err := c.Acquire(t.Context(), lock.Request{Key: "k", Wait: wait})
		if err == nil || errors.Is(err, lock.ErrBusy) || !strings.Contains(err.Error(), "refused") {
			t.Errorf("Acquire with wait %v = %v, want connection refused", wait, err)
		}
		if d := ran(start); d > 2*redisson.DefaultTimeout {
			t.Errorf("Acquire with wait %v took %v", wait, d)
		}
	}
}

// A call under a hold asks once: its release leaves to the outer one what Redis has to know.
func TestReentryIsOneCommand(t *testing.T) {
	s := redistest.Start(t)
	rdb := s.Client(t)
	l := newClient(t, s).Lock("k")
	outer := mustLock(t, l)
	reenter := func() {
		inner, err := l.Lock(outer)
		if err != nil {
			t.Fatal(err)
		}
		mustUnlock(t, l, inner)
	}
	reenter() // loads the script
	before, _ := commands(t, rdb)
	for range 10 {
		reenter()
	}
	// A client that holds for 50ms listens on its own channel, and asks about what it holds.
	if after, byName := commands(t, rdb); after-before < 10 || after-before > 12 {
		t.Errorf("%d commands for 10 re-entries, want 1 each, and 2 more at most: %v", after-before, byName)
	}
	mustUnlock(t, l, outer)
	if left := keys(t, rdb); len(left) != 0 {
		t.Errorf("keys %q are left", left)
	}
}

// What is in the table of the package comment.
func TestUncontendedCommandCounts(t *testing.T) {
	s := redistest.Start(t)
	rdb := s.Client(t)
	c := newClient(t, s)
	for _, l := range []struct {
		what string
		lock locker
	}{
		{"Lock", c.Lock("plain")},
		{"FairLock", c.FairLock("fair")},
		{"SpinLock", c.SpinLock("spin")},
		{"FencedLock", c.FencedLock("fenced")},
		{"ReadLock", c.ReadWriteLock("rw").ReadLock()},
		{"WriteLock", c.ReadWriteLock("rw").WriteLock()},
	} {
		mustUnlock(t, l.lock, mustLock(t, l.lock)) // loads the scripts
		before, first := commands(t, rdb)
		for range 10 {
			mustUnlock(t, l.lock, mustLock(t, l.lock))
		}
		after, byName := commands(t, rdb)
		after -= byName["subscribe"] - first["subscribe"] // a client begins to listen if the machine stands still meanwhile
		if after-before != 20 {
			t.Errorf("%s: %d commands for 10 rounds, want 2 each: %v", l.what, after-before, byName)
		}
	}
}

// foreignContext is a type that package context does not know: each context that derives from it has a goroutine until it ends.
type foreignContext struct {
	context.Context
	done chan struct{}
}

func (c foreignContext) Done() <-chan struct{} { return c.done }

// The context of a hold is made while its call waits. It ends with the call if that does not get the lock.
func TestWhoGivesUpLeavesNoContext(t *testing.T) {
	s := redistest.Start(t)
	c := newClient(t, s)
	held := mustLock(t, c.Lock("k"))
	try := func(ctx context.Context) {
		t.Helper()
		if _, ok, err := c.Lock("k").TryLock(ctx, 20*time.Millisecond, 0); ok || err != nil {
			t.Fatalf("TryLock of a lock that is held = %v, %v", ok, err)
		}
	}
	try(t.Context()) // the client has its own goroutines now
	before := runtime.NumGoroutine()
	const tries = 30
	for range tries {
		try(foreignContext{t.Context(), make(chan struct{})})
	}
	eventually(t, "the contexts have ended", func() bool { return runtime.NumGoroutine() < before+tries/2 })
	mustUnlock(t, c.Lock("k"), held)
}
