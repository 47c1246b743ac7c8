package redisson_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson"
	"github.com/redis/go-redis/v9"
)

// A forced release that Redis is sent twice frees once, and says what its first copy has done.

// freeing is a lock that somebody is about to free by hand, through a proxy.
type freeing struct {
	kind           lock.Kind
	holder, others *redisson.Client
	proxy          *redistest.Proxy
	key            string
	held           lock.Hold
	free           func() (bool, error)
}

// eachFreeing calls test with a lock of each kind, and each way to free it.
func eachFreeing(t *testing.T, test func(t *testing.T, what string, f freeing)) {
	s := redistest.Start(t)
	direct := newClient(t, s)
	hand, p := behind(t, s)
	for _, kind := range lockKinds {
		key := "k" + kind.String()
		ways := forces(hand, key, kind)
		ways["from its holder"] = nil
		for way, force := range ways {
			release(t, acquire(t.Context(), t, direct, lock.Request{Key: key, Kind: kind})) // loads the scripts, with the next line
			for _, load := range forces(direct, key, kind) {
				must(t, false)(load(t.Context()))
			}
			f := freeing{kind: kind, holder: newClient(t, s), others: direct, proxy: p, key: key}
			f.held = acquire(t.Context(), t, f.holder, lock.Request{Key: key, Kind: kind})
			hears(t, f.holder)
			id := inspect(t, direct, key).Holders[0].ID
			f.free = func() (bool, error) {
				if force == nil {
					return hand.ForceUnlockFrom(t.Context(), key, []string{id})
				}
				return force(t.Context())
			}
			test(t, fmt.Sprint(kind, " ", way), f)
			check(t, f.holder.Close())
		}
	}
}

// newcomer takes the lock, which has just become free.
func (f freeing) newcomer(t *testing.T) lock.Hold {
	return acquire(t.Context(), t, f.others, lock.Request{Key: f.key, Kind: f.kind})
}

// leaves checks that a newcomer still has the lock.
func (f freeing) leaves(t *testing.T, what string, h lock.Hold) {
	t.Helper()
	if err := h.Release(context.WithoutCancel(t.Context())); err != nil {
		t.Errorf("%s: the lock of who came later was freed, too: %v", what, err)
	}
}

// The answer is lost, and somebody has the lock when it is asked for again.
func TestForceUnlockRepeatedAfterANewcomer(t *testing.T) {
	t.Parallel()
	eachFreeing(t, func(t *testing.T, what string, f freeing) {
		answer := f.proxy.KeepBackReply(naming(f.key), 0)
		done := make(chan error, 1)
		go func() {
			freed, err := f.free()
			if err == nil && !freed {
				err = errors.New("it says that there was nothing to free")
			}
			done <- err
		}()
		answer.Await(t)
		later := f.newcomer(t)
		start := time.Now()
		f.proxy.Drop()
		if err := <-done; err != nil {
			t.Errorf("%s: %v", what, err)
		}
		expectForced(t, what, f.held.Context(), start) // although the answer that names it was lost
		f.leaves(t, what, later)
	})
}

// The answer is lost, and the lock is still free.
func TestForceUnlockSaysWhatItsFirstCopyDid(t *testing.T) {
	t.Parallel()
	eachFreeing(t, func(t *testing.T, what string, f freeing) {
		f.proxy.CutReply(naming(f.key), 1)
		start := time.Now()
		if freed, err := f.free(); !freed || err != nil || f.proxy.Cuts() > 0 {
			t.Errorf("%s: %v, %v, with %d answers that were not lost", what, freed, err, f.proxy.Cuts())
		}
		expectForced(t, what, f.held.Context(), start)
		if freed, err := f.free(); freed || err != nil { // another call
			t.Errorf("%s again: %v, %v; want nothing to free", what, freed, err)
		}
	})
}

// The first copy arrives late.
func TestForceUnlockArrivesLate(t *testing.T) {
	t.Parallel()
	eachFreeing(t, func(t *testing.T, what string, f freeing) {
		late := f.proxy.KeepBack(naming(f.key), 0)
		if freed, err := f.free(); !freed || err != nil {
			t.Errorf("%s: %v, %v", what, freed, err)
		}
		later := f.newcomer(t)
		late.Deliver(t)
		f.leaves(t, what, later)
	})
}

// A thread of Redisson has one id for all that it takes. What it takes after it was robbed is not what was seen.
func TestForceUnlockFromAThreadOfJava(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	rdb, ctx := s.Client(t), t.Context()
	hand, p := behind(t, s)
	const thread = "6ba7b810-9dad-41d1-80b4-00c04fd430c8:77"
	takes := func() { check(t, rdb.HSet(ctx, "k", thread, 1).Err()) }
	takes()
	must(t, true)(hand.ForceUnlockFrom(ctx, "k", []string{thread})) // loads the script
	takes()
	late := p.KeepBack(naming("k"), 0)
	must(t, true)(hand.ForceUnlockFrom(ctx, "k", []string{thread}))
	takes()
	late.Deliver(t)
	must(t, int64(1))(rdb.Exists(ctx, "k").Result())
}

// What was refused, or found nothing, stays so when its first copy comes late: the lock may have other holders by then.
func TestForceUnlockThatDidNothingArrivesLate(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	direct, rdb, ctx := newClient(t, s), s.Client(t), t.Context()
	hand, p := behind(t, s)
	must(t, false)(direct.ForceUnlock(ctx, "k")) // loads the script
	late := p.KeepBack(naming("k"), 0)
	must(t, false)(hand.ForceUnlock(ctx, "k"))
	later := acquire(ctx, t, direct, lock.Request{Key: "k"})
	late.Deliver(t)
	release(t, later)

	check(t, rdb.Set(ctx, "k", "a text", 0).Err())
	late = p.KeepBack(naming("k"), 0)
	if _, err := hand.ForceUnlock(ctx, "k"); !errors.Is(err, lock.ErrUnsupported) {
		t.Errorf("ForceUnlock of a text = %v", err)
	}
	check(t, rdb.Del(ctx, "k").Err())
	later = acquire(ctx, t, direct, lock.Request{Key: "k"})
	late.Deliver(t)
	release(t, later)
}

// A Redis that is full, and a user who may not write receipts, are no reason not to free a lock.
func TestForceUnlockWithoutAReceipt(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	admin, ctx := s.Client(t), t.Context()
	holder, hand := newClient(t, s), newClient(t, s)
	setUser(t, func(args ...any) error { return admin.Do(ctx, args...).Err() }, "~k* ~redisson* &* +@all")
	login := func(o *redis.Options) { o.Username, o.Password = "locker", "secret" }
	user := onClient(t, s.Client(t, login))
	for _, kind := range lockKinds {
		key := "k" + kind.String()
		for what, c := range map[string]*redisson.Client{"full": hand, "a user": user} {
			for way, force := range forces(c, key, kind) {
				freed(t, fmt.Sprint(what, ": ", kind, " ", way), holder, c, lock.Request{Key: key, Kind: kind}, func(ctx context.Context) (bool, error) {
					if what == "full" {
						check(t, admin.ConfigSet(ctx, "maxmemory", "1").Err())
						defer admin.ConfigSet(ctx, "maxmemory", "0")
					}
					return force(ctx)
				})
			}
		}
	}
}

// Receipts end by themselves, and a client that frees one lock after the other has one slot of them.
func TestForceUnlockLeavesOneReceipt(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	rdb, ctx, c := s.Client(t), t.Context(), newClient(t, s)
	for range 3 {
		must(t, false)(c.ForceUnlock(ctx, "k"))
		must(t, false)(c.Lock("k").ForceUnlock(ctx))
	}
	left := keys(t, rdb)
	if len(left) != 1 || !strings.HasPrefix(left[0], "latchkey_receipt:{k}:"+c.ID()) || rdb.TTL(ctx, left[0]).Val() < time.Minute {
		t.Errorf("left behind: %q", left)
	}
}

// The keys of a slot move one after the other. Who frees a lock at the new master by force leaves no receipt there while there may be one at
// the old master, which could not move then.
func TestForceUnlockAgainWhileTheSlotMoves(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 0)
	const key = "k"
	i, slot := cluster.Owner(t, key)
	from, to := cluster.Masters[i], cluster.Masters[(i+1)%3]
	holder, c := onClient(t, cluster.Client(t, quick)), onClient(t, cluster.Client(t, quick))
	force := func() {
		t.Helper()
		mustLock(t, holder.Lock(key))
		if ok, err := c.Lock(key).ForceUnlock(t.Context()); !ok || err != nil {
			t.Fatalf("ForceUnlock = %v, %v", ok, err)
		}
	}
	force()
	mustLock(t, holder.Lock(key))
	cluster.OpenSlot(t, slot, from, to)
	host, port := to.HostPort()
	from.Do(t, "migrate", host, port, key, 0, 5000)
	if ok, err := c.Lock(key).ForceUnlock(t.Context()); !ok || err != nil {
		t.Errorf("ForceUnlock while the slot moves = %v, %v", ok, err)
	}
	cluster.CloseSlot(t, slot, from, to) // fails if a receipt is in the way of another
	force()
}
