package redisson_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson"
	"github.com/redis/go-redis/v9"
)

// What can be done with each feature, for the tests of the users that need only so many permissions.

// aclUses are the features by the names of the users in the document.
var aclUses = map[string]func(*aclUse) error{
	"lock":      func(u *aclUse) error { return u.lock(lock.Exclusive) },
	"spin":      func(u *aclUse) error { return u.lock(lock.Spin) },
	"fenced":    func(u *aclUse) error { return u.all(u.kind(lock.Fenced), u.lastToken) },
	"fair":      func(u *aclUse) error { return u.all(u.kind(lock.Fair), u.impatience, u.ghosts) },
	"rw":        func(u *aclUse) error { return u.all(u.kind(lock.Write), u.kind(lock.Read), u.readers) },
	"permit":    func(u *aclUse) error { return u.all(u.kind(lock.Permit), u.otherKind, u.ofOthers) },
	"expirable": (*aclUse).expirable, "semaphore": (*aclUse).semaphore, "latch": (*aclUse).latch, "rate": (*aclUse).rate, "paced": (*aclUse).paced,
	"replace": (*aclUse).replace, "inspect": (*aclUse).inspect, "force": (*aclUse).force,
}

const (
	aclName     = "order:7"
	confirmSkip = 30 * time.Millisecond
	// silently is so long that a connection that listens is pinged.
	silently = 5500 * time.Millisecond
)

// all does one thing after the other, until one fails.
func (u *aclUse) all(things ...func() error) error {
	for _, do := range things {
		if err := do(); err != nil {
			return err
		}
	}
	return nil
}

// scripts returns how many scripts the server was asked for by their digests; nothing in a cluster.
func (u *aclUse) scripts() string {
	if u.admin == nil {
		return ""
	}
	info := u.admin.Info(u.t.Context(), "commandstats").Val()
	_, info, _ = strings.Cut(info, "cmdstat_evalsha:calls=")
	calls, _, _ := strings.Cut(info, ",")
	return calls
}

func (u *aclUse) kind(k lock.Kind) func() error { return func() error { return u.lock(k) } }

// lock does with a kind of lock all that can be done.
func (u *aclUse) lock(kind lock.Kind) error {
	r := lock.Request{Key: aclName, Kind: kind, Limit: 1, Wait: 20 * time.Second}
	ctx := u.ctx
	h, err := u.a.Acquire(ctx, r)
	if err != nil {
		return err
	}
	again, err := u.a.Acquire(h.Context(), r)
	if err != nil {
		return err
	}
	if err := errors.Join(again.Release(ctx), u.looks(r, h)); err != nil {
		return err
	}
	quick := r
	quick.Wait = 30 * time.Millisecond
	if other, err := u.b.Acquire(ctx, quick); err == nil {
		if err := other.Release(ctx); err != nil {
			return err
		}
	} else if !errors.Is(err, lock.ErrBusy) {
		return err
	}
	if err := u.all(func() error { return u.handOver(h, u.b, r, u.pause) }, func() error { return u.passOn(r) }, func() error { return u.keep(r) }, func() error { return u.gone(r) }); err != nil {
		return err
	}
	if kind == lock.Fair { // who has waited listens on
		return nil
	}
	return u.unsubscribed()
}

// lockInACluster does with a plain lock what is otherwise there than on one server.
func (u *aclUse) lockInACluster() error {
	r := lock.Request{Key: aclName, Wait: 5 * time.Second}
	h, err := u.a.Acquire(u.ctx, r)
	if err == nil {
		err = u.handOver(h, u.b, r, 300*time.Millisecond)
	}
	if err == nil {
		_, err = u.a.Acquire(u.ctx, r)
	}
	if err == nil {
		_, err = u.b.Lock(aclName).ForceUnlock(u.ctx)
	}
	return err
}

// looks asks for the state of a lock.
func (u *aclUse) looks(r lock.Request, h lock.Hold) error {
	ctx := u.ctx
	if err := u.b.Peek(ctx, r); err != nil && !errors.Is(err, lock.ErrBusy) {
		return err
	}
	err := h.(interface {
		Extend(ctx context.Context, d time.Duration) error
	}).Extend(ctx, time.Minute)
	if l := u.named(r.Kind); l != nil {
		_, err1 := l.IsLocked(ctx)
		_, err2 := l.TTL(ctx)
		err = errors.Join(err, err1, err2)
	}
	return err
}

// named returns the object of a kind, or nil.
func (u *aclUse) named(kind lock.Kind) *redisson.Lock {
	switch kind {
	case lock.Exclusive:
		return u.b.Lock(aclName)
	case lock.Spin:
		return u.b.SpinLock(aclName)
	case lock.Fair:
		return u.b.FairLock(aclName)
	case lock.Fenced:
		return u.b.Lock(aclName) // a FencedLock has the scripts of a Lock
	case lock.Read:
		return u.b.ReadWriteLock(aclName).ReadLock()
	case lock.Write:
		return u.b.ReadWriteLock(aclName).WriteLock()
	}
	return nil
}

// handOver releases h when a client has waited for it.
func (u *aclUse) handOver(h lock.Hold, to *redisson.Client, r lock.Request, pause time.Duration) error {
	return u.wait(pause, func() error {
		next, err := to.Acquire(u.ctx, r)
		if err != nil {
			return err
		}
		return next.Release(u.ctx)
	}, func() error { return h.Release(u.ctx) })
}

// wait gives something back when another one has asked for it, and then waited for the pause.
func (u *aclUse) wait(pause time.Duration, take, giveBack func() error) error {
	got, before := make(chan error, 1), u.scripts()
	go func() { got <- take() }()
	u.awaitScripts(before, got)
	time.Sleep(pause)
	err := giveBack()
	if err != nil {
		u.stop()
	}
	return errors.Join(err, <-got)
}

// awaitScripts returns when more scripts have run than before, or the call that is to cause that has ended.
func (u *aclUse) awaitScripts(before string, ended chan error) {
	for end := time.Now().Add(5 * time.Second); u.admin != nil && len(ended) == 0 && u.scripts() == before && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
}

// passOn hands a lock over within a client.
func (u *aclUse) passOn(r lock.Request) error {
	h, err := u.a.Acquire(u.ctx, r)
	if err != nil {
		return err
	}
	return u.handOver(h, u.a, r, confirmSkip)
}

// gone renews a lock that somebody has removed.
func (u *aclUse) gone(r lock.Request) error {
	if u.admin == nil {
		return nil
	}
	h, err := u.a.Acquire(u.ctx, r)
	if err != nil {
		return err
	}
	if err := u.admin.FlushDB(u.ctx).Err(); err != nil {
		return err
	}
	err = h.(interface {
		Extend(ctx context.Context, d time.Duration) error
	}).Extend(u.ctx, time.Minute)
	_ = h.Release(u.ctx) // which is lost
	if errors.Is(err, lock.ErrLost) {
		return nil
	}
	return fmt.Errorf("a lock that is gone: %w", err)
}

// keep leaves a lock to nobody for a moment, and frees it by force.
func (u *aclUse) keep(r lock.Request) error {
	ctx := u.ctx
	h, err := u.a.Acquire(ctx, r)
	if err != nil {
		return err
	}
	err = h.(interface {
		Keep(ctx context.Context, d time.Duration) error
	}).Keep(ctx, 5*time.Millisecond)
	if err != nil {
		return err
	}
	time.Sleep(10 * time.Millisecond)
	h, err = u.a.Acquire(ctx, r)
	if err != nil {
		return err
	}
	if l := u.named(r.Kind); l != nil {
		_, err = l.ForceUnlock(ctx)
		_ = h.Release(ctx) // which is lost
		return err
	}
	return h.Release(ctx)
}

// unsubscribed waits until nothing is subscribed any more.
func (u *aclUse) unsubscribed() error {
	for end := time.Now().Add(6 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if all, err := u.admin.PubSubChannels(u.t.Context(), "*").Result(); err == nil && len(all) == 0 {
			return nil
		}
	}
	return errors.New("still subscribed")
}

func (u *aclUse) lastToken() error {
	_, err := u.a.FencedLock(aclName).LastToken(u.t.Context())
	return err
}

// impatience has a waiter leave the queue in front of another one.
func (u *aclUse) impatience() error {
	r := lock.Request{Key: aclName, Kind: lock.Fair, Wait: 20 * time.Second}
	h, err := u.a.Acquire(u.ctx, r)
	if err != nil {
		return err
	}
	ctx, leave := context.WithCancel(u.ctx)
	defer leave()
	left, before := make(chan error, 1), u.scripts()
	go func() {
		_, err := u.b.Acquire(ctx, r)
		left <- err
	}()
	u.awaitScripts(before, left)
	time.Sleep(confirmSkip)
	return u.wait(confirmSkip, func() error {
		next, err := u.b.Acquire(u.ctx, r)
		if err != nil {
			return err
		}
		return next.Release(u.ctx)
	}, func() error {
		leave()
		early := <-left
		if errors.Is(early, context.Canceled) {
			early = nil
		}
		time.Sleep(confirmSkip) // it leaves the queue in the background
		return errors.Join(early, h.Release(u.ctx))
	})
}

// ghosts leaves a dead waiter and one without a deadline in the queue.
func (u *aclUse) ghosts() error {
	ctx := u.t.Context()
	queue, deadlines := "redisson_lock_queue:{"+aclName+"}", "redisson_lock_timeout:{"+aclName+"}"
	check(u.t, u.admin.RPush(ctx, queue, "dead:1", "ghost:1").Err())
	check(u.t, u.admin.ZAdd(ctx, deadlines, redis.Z{Score: 1, Member: "dead:1"}).Err())
	_, err := u.a.Acquire(ctx, lock.Request{Key: aclName, Kind: lock.Fair})
	if errors.Is(err, lock.ErrBusy) {
		err = u.b.Peek(ctx, lock.Request{Key: aclName, Kind: lock.Fair})
	}
	check(u.t, u.admin.Del(ctx, queue, deadlines).Err())
	if errors.Is(err, lock.ErrBusy) {
		return nil
	}
	return err
}

// readers has one reader leave another behind, and a writer that goes on reading.
func (u *aclUse) readers() error {
	ctx := u.ctx
	read, write := lock.Request{Key: aclName, Kind: lock.Read}, lock.Request{Key: aclName, Kind: lock.Write}
	one, err1 := u.a.Acquire(ctx, read)
	two, err2 := u.b.Acquire(ctx, read)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	if err := errors.Join(one.Release(ctx), two.Release(ctx)); err != nil {
		return err
	}
	one, err := u.a.Acquire(ctx, write)
	if err != nil {
		return err
	}
	two, err = u.a.Acquire(one.Context(), read)
	if err != nil {
		return err
	}
	if _, err := u.b.ReadWriteLock(aclName).ReadLock().IsLocked(ctx); err != nil {
		return err
	}
	return errors.Join(one.Release(ctx), two.Release(ctx))
}

// ofOthers takes a permit of a semaphore that somebody else has set.
func (u *aclUse) ofOthers() error {
	if err := u.stock.Set(u.ctx, aclName, 2, 0).Err(); err != nil {
		return err
	}
	h, err := u.a.Acquire(u.ctx, lock.Request{Key: aclName, Kind: lock.Permit, Limit: 1})
	if err != nil {
		return err
	}
	return h.Release(u.ctx)
}

// paced begins by a rate.
func (u *aclUse) paced() error {
	r := lock.Request{Key: aclName, Kind: lock.Permit, Rate: lock.Rate{Permits: 2, Interval: time.Second}}
	for _, c := range []*redisson.Client{u.a, u.b, u.a, u.b} {
		if err := c.Peek(u.ctx, r); err != nil && !errors.Is(err, lock.ErrBusy) {
			return err
		}
		if r.Rate.Permits++; c == u.b {
			r.Wait = 5 * time.Second
		}
		h, err := c.Acquire(u.ctx, r)
		if err != nil {
			return err
		}
		if err := h.Release(u.ctx); err != nil {
			return err
		}
		r.Rate.Permits = 2
	}
	return nil
}

// otherKind asks for a permit where there is another kind of lock.
func (u *aclUse) otherKind() error {
	ctx := u.t.Context()
	check(u.t, u.admin.FlushDB(ctx).Err())
	check(u.t, u.admin.HSet(ctx, aclName, "mode", "read").Err())
	_, err := u.a.Acquire(ctx, lock.Request{Key: aclName, Kind: lock.Permit, Limit: 1})
	if !errors.Is(err, lock.ErrUnsupported) {
		return err
	}
	if err = u.a.Peek(ctx, lock.Request{Key: aclName, Kind: lock.Permit, Limit: 1}); !errors.Is(err, lock.ErrUnsupported) {
		return err
	}
	return nil
}

func (u *aclUse) expirable() error {
	ctx := u.ctx
	a, b := u.a.PermitExpirableSemaphore(aclName), u.b.PermitExpirableSemaphore(aclName)
	if _, err := a.TrySetPermits(ctx, 1); err != nil {
		return err
	}
	check(u.t, u.admin.PExpire(u.t.Context(), aclName, time.Hour).Err()) // which others may set
	if _, err := a.Acquire(ctx, 50*time.Millisecond); err != nil && !strings.Contains(err.Error(), "longer to answer than the lease") {
		return err
	}
	time.Sleep(60 * time.Millisecond)
	id, err := a.Acquire(ctx, time.Minute)
	if err != nil {
		return err
	}
	if err := a.UpdateLease(ctx, id, time.Hour); err != nil {
		return err
	}
	_, err1 := a.AvailablePermits(ctx)
	_, err2 := a.LeaseTime(ctx, id)
	_, err3 := a.AcquiredPermits(ctx)
	err = u.wait(u.pause, func() error { id, err := b.Acquire(ctx, time.Minute); return errors.Join(err, b.Release(ctx, id)) },
		func() error { return a.Release(ctx, id) })
	if err := errors.Join(err, err1, err2, err3, a.AddPermits(ctx, 1), a.SetPermits(ctx, 3)); err != nil {
		return err
	}
	_, err = a.Delete(ctx)
	return errors.Join(err, u.unsubscribed())
}

func (u *aclUse) semaphore() error {
	ctx := u.ctx
	a, b := u.a.Semaphore(aclName), u.b.Semaphore(aclName)
	if _, err := a.TrySetPermits(ctx, 1); err != nil {
		return err
	}
	if err := a.Acquire(ctx, 1); err != nil {
		return err
	}
	if err := u.wait(u.pause, func() error { return b.Acquire(ctx, 1) }, func() error { return a.Release(ctx, 1) }); err != nil {
		return err
	}
	_, err1 := a.AvailablePermits(ctx)
	_, err2 := a.DrainPermits(ctx)
	_, err3 := a.ReleaseIfExists(ctx, 1)
	_, err4 := a.Delete(ctx)
	return errors.Join(err1, err2, err3, err4, a.AddPermits(ctx, 1), u.unsubscribed())
}

func (u *aclUse) latch() error {
	ctx := u.ctx
	l := u.a.CountDownLatch(aclName)
	if _, err := l.TrySetCount(ctx, 2); err != nil {
		return err
	}
	if err := l.CountDown(ctx); err != nil {
		return err
	}
	if err := u.wait(u.pause, func() error { return u.b.CountDownLatch(aclName).Await(ctx) }, func() error { return l.CountDown(ctx) }); err != nil {
		return err
	}
	_, err1 := l.Count(ctx)
	_, err2 := l.Delete(ctx)
	return errors.Join(err1, err2, u.unsubscribed())
}

func (u *aclUse) rate() error {
	ctx := u.ctx
	l := u.a.RateLimiter(aclName)
	rate := redisson.Rate{Permits: 2, Interval: 100 * time.Millisecond}
	kept := redisson.Rate{Permits: 2, Interval: time.Second, KeepAlive: time.Minute}
	if _, err := l.TrySetRate(ctx, rate); err != nil {
		return err
	}
	for range 5 { // the last ones wait
		if err := l.Acquire(ctx, 1); err != nil {
			return err
		}
	}
	if err := u.undone(); err != nil {
		return err
	}
	_, err1 := l.Rate(ctx)
	_, err2 := l.AvailablePermits(ctx)
	if err := errors.Join(err1, err2, l.UpdateRate(ctx, kept, true), l.Acquire(ctx, 1), l.Release(ctx, 1), l.UpdateRate(ctx, rate, false), l.SetRate(ctx, kept)); err != nil {
		return err
	}
	_, err := l.Delete(ctx)
	return err
}

// undone has answers lost on their way, so that what was taken is given back later.
func (u *aclUse) undone() error {
	ctx, p := u.ctx, u.s.Front(u.t)
	c := onClient(u.t, u.s.Client(u.t, u.login, func(o *redis.Options) { o.Addr = p.Addr }), redisson.Timeout(200*time.Millisecond))
	l := c.RateLimiter(aclName)
	if _, err := l.Rate(ctx); err != nil {
		return err
	}
	p.CutReply("evalsha", 1000)
	if l.Acquire(ctx, 2) == nil {
		return errors.New("an acquire without an answer succeeded")
	}
	p.CutReply("", 0)
	return c.Close()
}

func (u *aclUse) replace() error {
	ctx := u.ctx
	first, leave, err := u.a.Replace(ctx, lock.Request{Key: aclName})
	if err != nil {
		return err
	}
	time.Sleep(u.pause) // it has looked
	_, leave2, err := u.b.Replace(ctx, lock.Request{Key: aclName})
	if err != nil {
		return err
	}
	select {
	case <-first.Done():
	case <-time.After(5 * time.Second):
		err = errors.New("not replaced")
	}
	leave()
	leave2()
	return errors.Join(err, u.unsubscribed())
}
