package redisson_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson"
	"github.com/redis/go-redis/v9"
)

const ownChannels = "latchkey_client:*"

// hears waits until a client listens on its own channel, and knows what was said before.
func hears(tb testing.TB, c *redisson.Client) {
	tb.Helper()
	within(tb, 30*time.Second, "the client listens on its own channel, and has asked for what it missed", func() bool { return redisson.Hears(c) })
}

// expectForced checks that a hold ends because it was freed by hand, and by a message, as the next renewal is 10 s away. It returns after
// which time. A machine that does other things may hold up most of them, so the promise of 100ms is held to the fastest of many.
func expectForced(tb testing.TB, what string, held context.Context, since time.Time) time.Duration {
	tb.Helper()
	cause := awaitEnd(tb, held, 10*time.Second)
	took := time.Since(since)
	if !errors.Is(cause, redisson.ErrForced) || !errors.Is(cause, lock.ErrLost) {
		tb.Errorf("%s: the hold ended with %v, want ErrForced", what, cause)
	}
	if took > 5*time.Second {
		tb.Errorf("%s: told after %v, which was no message", what, took)
	}
	return took
}

// freed takes a lock and has it freed by hand, and returns the hold when it has heard of that, and after which time. A holder may stop to listen just
// then, if the machine is busy, and find the lock gone: it takes another one.
func freed(t *testing.T, what string, holder, hand *redisson.Client, r lock.Request, force func(context.Context) (bool, error)) (h lock.Hold, took time.Duration) {
	t.Helper()
	for try := 1; ; try++ {
		h = acquire(t.Context(), t, holder, r)
		if holder != hand {
			hears(t, holder)
		}
		start := time.Now()
		must(t, true)(force(t.Context()))
		if cause := awaitEnd(t, h.Context(), 10*time.Second); try == 3 || errors.Is(cause, redisson.ErrForced) {
			return h, expectForced(t, what, h.Context(), start)
		}
	}
}

// forces are the ways to free a lock of a kind by hand.
func forces(c *redisson.Client, key string, kind lock.Kind) map[string]func(context.Context) (bool, error) {
	l := map[lock.Kind]*redisson.Lock{
		lock.Exclusive: c.Lock(key), lock.Fenced: c.Lock(key), lock.Spin: c.SpinLock(key), lock.Fair: c.FairLock(key),
		lock.Read: c.ReadWriteLock(key).ReadLock(), lock.Write: c.ReadWriteLock(key).WriteLock(),
	}[kind]
	return map[string]func(context.Context) (bool, error){
		"the lock's method": l.ForceUnlock,
		"by key":            func(ctx context.Context) (bool, error) { return c.ForceUnlock(ctx, key) },
	}
}

var lockKinds = []lock.Kind{lock.Exclusive, lock.Fenced, lock.Spin, lock.Fair, lock.Read, lock.Write}

// toldOfAllKinds frees locks of all kinds by hand, that the first client holds.
func toldOfAllKinds(t *testing.T, holder, hand *redisson.Client) {
	t.Helper()
	var took []time.Duration
	for _, kind := range lockKinds {
		for way, force := range forces(hand, "k"+kind.String(), kind) {
			h, after := freed(t, fmt.Sprint(kind, " ", way), holder, hand, lock.Request{Key: "k" + kind.String(), Kind: kind}, force)
			took = append(took, after)
			if err := h.Release(t.Context()); !errors.Is(err, redisson.ErrForced) {
				t.Errorf("%v: Release = %v, want ErrForced", kind, err)
			}
			must(t, false)(force(t.Context()))
		}
	}
	slices.Sort(took)
	if took[0] > 100*time.Millisecond {
		t.Errorf("told after %v, want 100ms at most", took)
	}
}

func TestForceUnlockTellsTheHolder(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	holder, hand := newClient(t, s), newClient(t, s)
	t.Run("other client", func(t *testing.T) { toldOfAllKinds(t, holder, hand) })
	t.Run("same client", func(t *testing.T) { toldOfAllKinds(t, hand, hand) })
}

func TestForceUnlockTellsTheHolderInACluster(t *testing.T) {
	t.Parallel()
	cl := redistest.StartCluster(t, 0)
	for _, mode := range []redisson.ShardedMode{redisson.ShardedAuto, redisson.ShardedOff} {
		holder, hand := onClient(t, cl.Client(t), redisson.ShardedPubSub(mode)), onClient(t, cl.Client(t), redisson.ShardedPubSub(mode))
		toldOfAllKinds(t, holder, hand)
		for i := range 10 { // on all masters
			key := fmt.Sprint("k", i)
			freed(t, "cluster", holder, hand, lock.Request{Key: key}, func(ctx context.Context) (bool, error) { return hand.ForceUnlock(ctx, key) })
		}
		check(t, errors.Join(holder.Close(), hand.Close()))
	}
}

// A client that begins to listen again while its channel lingers has heard nothing that would make it ask.
func TestListensAgain(t *testing.T) {
	t.Parallel()
	c := newClient(t, redistest.Start(t))
	for range 3 {
		h := acquire(t.Context(), t, c, lock.Request{Key: "k"})
		hears(t, c)
		release(t, h)
		within(t, 10*time.Second, "nobody listens", func() bool { return !redisson.Listens(c) })
	}
}

// All who read are told, each in a client of its own, and nobody else.
func TestForceUnlockTellsAllReaders(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	var held []context.Context
	for range 5 {
		c := newClient(t, s)
		for range 3 {
			held = append(held, acquire(t.Context(), t, c, lock.Request{Key: "rw", Kind: lock.Read}).Context())
		}
		held = append(held, acquire(t.Context(), t, c, lock.Request{Key: "other", Kind: lock.Read}).Context())
		hears(t, c)
	}
	start := time.Now()
	must(t, true)(newClient(t, s).ForceUnlock(t.Context(), "rw"))
	for i, ctx := range held {
		if i%4 < 3 {
			expectForced(t, fmt.Sprint("reader ", i), ctx, start)
		} else if ctx.Err() != nil {
			t.Errorf("another lock was lost: %v", context.Cause(ctx))
		}
	}
}

// The holder is another process.
func TestForceUnlockTellsAnotherProcess(t *testing.T) {
	const inChild = "LATCHKEY_TEST_TOLD_ADDR"
	if addr := os.Getenv(inChild); addr != "" {
		rdb := redis.NewClient(&redis.Options{Addr: addr})
		c := onClient(t, rdb)
		held := mustLock(t, c.Lock("k"))
		hears(t, c)
		fmt.Println("child: holds")
		<-held.Done()
		fmt.Println("child: told,", errors.Is(context.Cause(held), redisson.ErrForced))
		return
	}
	t.Parallel()
	s := redistest.Start(t)
	child := exec.Command(os.Args[0], "-test.run", "^TestForceUnlockTellsAnotherProcess$", "-test.v")
	child.Env = append(os.Environ(), inChild+"="+s.Addr)
	out, err := child.StdoutPipe()
	check(t, err)
	check(t, child.Start())
	defer child.Process.Kill() //nolint:errcheck // it has ended by then
	lines := bufio.NewScanner(out)
	next := func() string {
		for lines.Scan() {
			if text, ok := strings.CutPrefix(lines.Text(), "child: "); ok {
				return text
			}
		}
		return ""
	}
	if said := next(); said != "holds" {
		t.Fatalf("the child says %q", said)
	}
	start := time.Now()
	must(t, true)(newClient(t, s).ForceUnlock(t.Context(), "k"))
	said, took := next(), time.Since(start)
	if t.Logf("told after %v", took); said != "told, true" || took > 100*time.Millisecond+soon {
		t.Errorf("the child says %q after %v", said, took)
	}
	_ = child.Wait()
}

// A lock that is freed before its client listens is missed at once, too: a client asks about what it holds as soon as it hears.
func TestForceUnlockOfAFreshHold(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	holder, hand := newClient(t, s), newClient(t, s)
	for range 5 {
		h := acquire(t.Context(), t, holder, lock.Request{Key: "k"})
		start := time.Now()
		must(t, true)(hand.ForceUnlock(t.Context(), "k"))
		if cause := awaitEnd(t, h.Context(), 10*time.Second); !errors.Is(cause, redisson.ErrGone) && !errors.Is(cause, redisson.ErrForced) || time.Since(start) > 100*time.Millisecond+soon {
			t.Errorf("the hold ended with %v after %v", cause, time.Since(start))
		}
		check(t, holder.Close())
		holder = newClient(t, s)
	}
}

// The connection on which a client listens breaks, and a lock is freed meanwhile.
func TestForceUnlockWhileNobodyHears(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	holder, hand, admin := newClient(t, s), newClient(t, s), s.Client(t)
	h := acquire(t.Context(), t, holder, lock.Request{Key: "k"})
	stays := acquire(t.Context(), t, holder, lock.Request{Key: "stays"})
	hears(t, holder)
	check(t, admin.Do(t.Context(), "client", "kill", "type", "pubsub").Err())
	must(t, true)(hand.ForceUnlock(t.Context(), "k"))
	if cause := awaitEnd(t, h.Context(), 9*time.Second); !errors.Is(cause, redisson.ErrGone) && !errors.Is(cause, redisson.ErrForced) { // its renewal would be due in 10s
		t.Errorf("the hold ended with %v", cause)
	}
	if stays.Context().Err() != nil {
		t.Errorf("another hold ended: %v", context.Cause(stays.Context()))
	}
}

// What anybody can publish ends nothing that Redis has, and costs few questions.
func TestForgedMessages(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c, rdb, ctx := newClient(t, s), s.Client(t), t.Context()
	h, read := acquire(ctx, t, c, lock.Request{Key: "a key"}), acquire(ctx, t, c, lock.Request{Key: "rw", Kind: lock.Read})
	id := redisson.HolderID(h.Context(), c, "a key", lock.Exclusive)
	hears(t, c)
	own := "latchkey_client:" + c.ID()
	before, _ := commands(t, rdb)
	nonsense := []string{"", " ", "x", id, id + " ", id + " other", c.ID() + ":99 a key", " a key", "\xff\x00 \xff", strings.Repeat("x", 1<<20)}
	start := time.Now()
	for i := range 300 {
		check(t, rdb.Publish(ctx, own, nonsense[i%len(nonsense)]).Err())
		for range 30 {
			check(t, rdb.Publish(ctx, own, id+" a key").Err())
		}
	}
	eventually(t, "it asks", func() bool { after, _ := commands(t, rdb); return after > before })
	after, byName := commands(t, rdb)
	took := time.Since(start)
	t.Logf("%d commands for 9300 messages in %v", after-before, took)
	if most := 20 + 3*int(took/(10*time.Millisecond)); after-before > most {
		t.Errorf("%d commands, want %d at most: %v", after-before, most, byName)
	}
	if h.Context().Err() != nil || read.Context().Err() != nil {
		t.Errorf("a message has ended a hold: %v, %v", context.Cause(h.Context()), context.Cause(read.Context()))
	}
	// And what is true still counts.
	start = time.Now()
	must(t, true)(newClient(t, s).ForceUnlock(ctx, "a key"))
	expectForced(t, "after the flood", h.Context(), start)
	release(t, read)
}

// A flood of forged messages does not hide the true one, although the answers of Redis take longer than the time between two of them.
func TestForgedMessagesHideNothing(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c, p := behind(t, s, redisson.WatchdogTimeout(30*time.Second))
	rdb := s.Client(t)
	h, other := acquire(t.Context(), t, c, lock.Request{Key: "k"}), acquire(t.Context(), t, c, lock.Request{Key: "other"})
	hears(t, c)
	p.Delay(40 * time.Millisecond)
	flood, stop := context.WithCancel(t.Context())
	var flooding sync.WaitGroup
	defer flooding.Wait()
	defer stop()
	flooding.Go(func() {
		for flood.Err() == nil {
			for _, name := range []string{"k", "other"} {
				_ = rdb.Publish(flood, "latchkey_client:"+c.ID(), redisson.HolderID(h.Context(), c, "k", lock.Exclusive)+" "+name).Err()
			}
			<-time.After(time.Millisecond)
		}
	})
	<-time.After(300 * time.Millisecond)
	must(t, true)(newClient(t, s).ForceUnlock(t.Context(), "k"))
	if cause := awaitEnd(t, h.Context(), 3*time.Second); !errors.Is(cause, redisson.ErrForced) { // its renewal would be due in 10s
		t.Errorf("the hold ended with %v", cause)
	}
	if other.Context().Err() != nil {
		t.Errorf("another hold ended: %v", context.Cause(other.Context()))
	}
}

// A client listens only while it has something to hear about, and not for the sake of locks that are held for a moment.
func TestOwnChannelIsGivenUp(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c, rdb := newClient(t, s), s.Client(t)
	listeners := func() int { return len(rdb.PubSubChannels(t.Context(), ownChannels).Val()) }
	for range 2 {
		for start := time.Now(); time.Since(start) < 4*50*time.Millisecond; {
			began := time.Now()
			release(t, acquire(t.Context(), t, c, lock.Request{Key: "k"}))
			switch moment := time.Since(began) < 25*time.Millisecond; {
			case !moment: // the machine stood still, and so the client began to listen, or is about to
				<-time.After(200 * time.Millisecond)
				eventually(t, "it does not listen any more", func() bool { return listeners() == 0 })
			case listeners() > 0:
				t.Fatal("it listens for the sake of a lock that is held for a moment")
			}
		}
		h := acquire(t.Context(), t, c, lock.Request{Key: "k"})
		eventually(t, "it listens", func() bool { return listeners() == 1 })
		release(t, h)
		eventually(t, "it does not listen any more", func() bool { return listeners() == 0 })
	}
	p := acquire(t.Context(), t, c, lock.Request{Key: "p", Kind: lock.Permit, Limit: 1})
	<-time.After(200 * time.Millisecond)
	if listeners() > 0 {
		t.Error("it listens for the sake of a permit")
	}
	release(t, p)
}

// A user who may not use the client's own channel has locks as before: those who wait are still woken.
func TestOwnChannelIsRefused(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	admin := s.Client(t)
	setUser(t, func(args ...any) error { return admin.Do(t.Context(), args...).Err() }, "~* &redisson_lock__channel:* +@all")
	login := func(o *redis.Options) { o.Username, o.Password = "locker", "secret" }
	a, b := onClient(t, s.Client(t, login)), onClient(t, s.Client(t, login))
	connections := func() []string {
		list, err := admin.Do(t.Context(), "client", "list", "type", "pubsub").Text()
		check(t, err)
		return regexp.MustCompile(`(?m)^id=\d+`).FindAllString(list, -1)
	}
	acquire(t.Context(), t, b, lock.Request{Key: "other"})
	eventually(t, "its channel is refused", func() bool {
		return slices.ContainsFunc(denials(t, admin), func(d string) bool { return strings.HasPrefix(d, "channel latchkey_client:") })
	})
	var first []string
	for i := range 5 {
		h := acquire(t.Context(), t, a, lock.Request{Key: fmt.Sprint("k", i)})
		got := make(chan error, 1)
		go func() {
			other, err := b.Acquire(t.Context(), lock.Request{Key: fmt.Sprint("k", i), Wait: 20 * time.Second})
			got <- err
			if err == nil {
				_ = other.Release(context.Background())
			}
		}()
		eventually(t, "it waits", func() bool { return len(subscriptions(t, admin)) == 1 })
		if now := connections(); i == 0 {
			first = now
		} else if !slices.Contains(now, first[0]) {
			t.Errorf("the connection on which it listens was made again: %v, and was %v", now, first)
		}
		start := time.Now()
		release(t, h)
		if err := <-got; err != nil || time.Since(start) > 100*time.Millisecond+soon {
			t.Errorf("a waiter got the lock after %v: %v", time.Since(start), err)
		}
		eventually(t, "nobody waits", func() bool { return len(subscriptions(t, admin)) == 0 })
	}
}

func TestForceUnlockByKeyRefuses(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c, rdb, ctx := newClient(t, s), s.Client(t), t.Context()
	must(t, true)(c.RateLimiter("rate").TrySetRate(ctx, redisson.Rate{Permits: 3, Interval: time.Second}))
	must(t, true)(c.Semaphore("sem").TrySetPermits(ctx, 5))
	acquire(ctx, t, c, lock.Request{Key: "permit", Kind: lock.Permit, Limit: 1})
	for _, key := range append(strangers(t, rdb), "rate", "sem", "permit", "{permit}:timeout") {
		before := rdb.Dump(ctx, key).Val()
		if ok, err := c.ForceUnlock(ctx, key); ok || !errors.Is(err, lock.ErrUnsupported) || rdb.Dump(ctx, key).Val() != before {
			t.Errorf("ForceUnlock(%q) = %v, %v, want a refusal", key, ok, err)
		}
	}
	must(t, false)(c.ForceUnlock(ctx, "none"))
	if _, err := c.ForceUnlock(ctx, ""); err == nil {
		t.Error("a lock without a key is freed")
	}
	mapped := newClient(t, s, redisson.NameMapper(func(name string) string { return "app:" + name }))
	acquire(ctx, t, mapped, lock.Request{Key: "k"})
	must(t, false)(mapped.ForceUnlock(ctx, "k"))
	must(t, true)(mapped.ForceUnlock(ctx, "app:k"))
}

// Freed by its key, a lock goes to who waits for it.
func TestForceUnlockByKeyWakes(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	for _, kind := range lockKinds {
		holder, other := newClient(t, s), newClient(t, s)
		r := lock.Request{Key: "k" + kind.String(), Kind: kind, Wait: time.Minute}
		held := r
		if kind == lock.Read { // for which readers do not wait
			held.Kind = lock.Write
		}
		acquire(t.Context(), t, holder, held)
		got := make(chan error, 1)
		go func() { got <- second(other.Acquire(t.Context(), r)) }()
		eventually(t, "it waits", func() bool {
			o := inspect(t, holder, r.Key)
			return o.Listeners > 0 || len(o.Queue) > 0 && len(subscriptions(t, s.Client(t))) > 0 || kind == lock.Spin
		})
		must(t, true)(holder.ForceUnlock(t.Context(), r.Key))
		select {
		case err := <-got:
			check(t, err)
		case <-time.After(5 * time.Second):
			t.Errorf("who waits for a lock of kind %v is not woken", kind)
		}
		check(t, errors.Join(holder.Close(), other.Close()))
	}
}

// Through sentinels, locks are found, and their holders told, also at the new master after a failover.
func TestOperatorsThroughSentinels(t *testing.T) {
	t.Parallel()
	s := redistest.StartSentinels(t)
	process := func() *redisson.Client {
		return onClient(t, s.Client(t, func(o *redis.FailoverOptions) { o.ContextTimeoutEnabled, o.DialerRetries = true, 1 }))
	}
	holder, hand := process(), process()
	tell := func(name string) {
		h := acquire(t.Context(), t, holder, lock.Request{Key: name, Wait: 30 * time.Second})
		hears(t, holder)
		expectObjects(t, objects(t, hand, name), name)
		expectType(t, inspect(t, hand, name), redisson.TypeLock)
		start := time.Now()
		must(t, true)(hand.ForceUnlock(t.Context(), name))
		expectForced(t, name, h.Context(), start)
	}
	tell("before")
	s.Master.Kill(t)
	s.AwaitReplicaLeads(t)
	tell("after")
}
