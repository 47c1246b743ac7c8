package redisson

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/lock"
	"github.com/redis/go-redis/v9"
)

// kennel runs a watchdog in a bubble, with a Redis that is a function.
type kennel struct {
	*Client
	errands []time.Duration // when something was asked, since the start
	leases  []time.Duration // of these renewals
}

// inKennel runs f with a watchdog of 30s whose questions are answered by redis.
func inKennel(t *testing.T, redis func(ctx context.Context, e errand) outcome, f func(*testing.T, *kennel)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		k := &kennel{Client: &Client{seats: map[seatKey]*seat{}, timeout: 3 * time.Second}}
		k.watchdog = newWatchdog(30*time.Second, 6*time.Second, func(ctx context.Context, batch []errand) []outcome {
			outcomes := make([]outcome, len(batch))
			for i, e := range batch {
				k.watchdog.mu.Lock()
				k.errands = append(k.errands, time.Since(start))
				k.leases = append(k.leases, e.lease)
				k.watchdog.mu.Unlock()
				outcomes[i] = redis(ctx, e)
			}
			return outcomes
		})
		ctx, cancel := context.WithCancel(t.Context())
		k.ctx = ctx
		k.wg.Go(func() { k.watchdog.run(ctx) })
		f(t, k)
		cancel()
		k.wg.Wait()
	})
}

// asked returns when questions were asked so far, and for which lease.
func (k *kennel) asked() (at, leases []time.Duration) {
	k.watchdog.mu.Lock()
	defer k.watchdog.mu.Unlock()
	return slices.Clone(k.errands), slices.Clone(k.leases)
}

// expectEmpty checks that nothing is looked after any more.
func (k *kennel) expectEmpty(t *testing.T) {
	t.Helper()
	synctest.Wait()
	if len(k.watchdog.claims) != 0 || len(k.seats) != 0 {
		t.Errorf("%d claims and %d seats are left", len(k.watchdog.claims), len(k.seats))
	}
}

// hold puts a hold under the watchdog's care as an Acquire at this moment does.
func (k *kennel) hold(t *testing.T, r lock.Request) *hold {
	t.Helper()
	s := k.sit(seatKey{"k", plain{}, 1})
	defer k.rise(s)
	k.watchdog.mu.Lock()
	defer k.watchdog.mu.Unlock()
	w := &wait{c: k.Client, ctx: t.Context(), request: r}
	now, cl := time.Now(), &claim{name: "k", family: plain{}, holder: "h", seat: s, index: -1}
	h := w.newHold(cl)
	lease := leaseFor([]*hold{h}, k.watchdog.timeout)
	cl.until, cl.renewAt = now.Add(goodFor(lease)), k.watchdog.renewalDue(now, lease)
	if err := w.admit(h, answer{sent: now, values: []int64{1, 0}}); err != nil {
		t.Fatal(err)
	}
	return h
}

func (k *kennel) lockedUndo(cl *claim) {
	k.watchdog.mu.Lock()
	defer k.watchdog.mu.Unlock()
	k.undo(cl)
}

// endsAfter waits until the hold ends, and checks when and why.
func endsAfter(t *testing.T, h *hold, want time.Duration, reason error) {
	t.Helper()
	<-h.ctx.Done()
	cause := context.Cause(h.ctx)
	lost, ok := errors.AsType[*lock.LostError](cause)
	if !ok || lost.Held != want || !errors.Is(cause, reason) {
		t.Errorf("hold ended with %v after %v, want %v after %v", cause, time.Since(h.since), reason, want)
	}
}

func answered(context.Context, errand) outcome { return outcome{done: true} }

func TestWatchdogRenewsAtAThird(t *testing.T) {
	inKennel(t, answered, func(t *testing.T, k *kennel) {
		h := k.hold(t, lock.Request{Key: "k"})
		time.Sleep(35 * time.Second)
		want := []time.Duration{10 * time.Second, 20 * time.Second, 30 * time.Second}
		if at, _ := k.asked(); !slices.Equal(at, want) {
			t.Errorf("renewals at %v, want %v", at, want)
		}
		if h.ctx.Err() != nil {
			t.Errorf("hold ended: %v", context.Cause(h.ctx))
		}
	})
}

// Silence: a new attempt each second from the third on, and the end a margin before the lease's.
func TestWatchdogWithoutAnswers(t *testing.T) {
	silent := func(ctx context.Context, _ errand) outcome {
		<-ctx.Done()
		return outcome{err: ctx.Err()}
	}
	inKennel(t, silent, func(t *testing.T, k *kennel) {
		h := k.hold(t, lock.Request{Key: "k"})
		endsAfter(t, h, 29*time.Second, errUnheard)
		if at, _ := k.asked(); len(at) != 19 || at[0] != 10*time.Second || at[18] != 28*time.Second {
			t.Errorf("attempts at %v, want each second from 10s to 28s", at)
		}
	})
}

// Errors are no loss, and the last one is told as the reason.
func TestWatchdogWithErrors(t *testing.T) {
	refused := errors.New("connection refused")
	inKennel(t, func(context.Context, errand) outcome { return outcome{err: refused} }, func(t *testing.T, k *kennel) {
		endsAfter(t, k.hold(t, lock.Request{Key: "k"}), 29*time.Second, refused)
	})
}

// An answer counts from when the question was sent: one that took 15s for a question at 10s is good until 39s.
func TestWatchdogWithASlowAnswer(t *testing.T) {
	var asked atomic.Int32
	slow := func(ctx context.Context, _ errand) outcome {
		if asked.Add(1) > 1 {
			<-ctx.Done()
			return outcome{err: ctx.Err()}
		}
		time.Sleep(15 * time.Second)
		return outcome{done: true}
	}
	inKennel(t, slow, func(t *testing.T, k *kennel) {
		endsAfter(t, k.hold(t, lock.Request{Key: "k"}), 39*time.Second, errUnheard)
	})
}

func TestWatchdogToldThatItIsGone(t *testing.T) {
	inKennel(t, func(context.Context, errand) outcome { return outcome{} }, func(t *testing.T, k *kennel) {
		endsAfter(t, k.hold(t, lock.Request{Key: "k"}), 10*time.Second, errGone)
		time.Sleep(time.Minute)
		if at, _ := k.asked(); len(at) != 1 {
			t.Errorf("questions at %v, want one", at)
		}
		k.expectEmpty(t)
	})
}

func TestLeaseEndsByItself(t *testing.T) {
	inKennel(t, answered, func(t *testing.T, k *kennel) {
		endsAfter(t, k.hold(t, lock.Request{Key: "k", Lease: 10 * time.Second}), 9500*time.Millisecond, errLease)
		time.Sleep(time.Minute)
		if at, leases := k.asked(); len(at) != 1 || leases[0] != 0 || at[0] != 10*time.Second {
			t.Errorf("asked at %v for %v, want a removal when the lease is over", at, leases)
		}
		k.expectEmpty(t)
	})
}

// With MaxHold, the work is told a margin earlier, and the lock is removed from Redis instead of waiting for its lease.
func TestMaxHoldEndsALock(t *testing.T) {
	inKennel(t, answered, func(t *testing.T, k *kennel) {
		h := k.hold(t, lock.Request{Key: "k", MaxHold: 45 * time.Second})
		endsAfter(t, h, 44*time.Second, lock.ErrMaxHold)
		time.Sleep(time.Minute)
		at, leases := k.asked()
		if n := len(at); n != 5 || at[4] != 45*time.Second || leases[4] != 0 || leases[3] == 0 {
			t.Errorf("asked at %v for %v, want four renewals and a removal at 45s", at, leases)
		}
		k.expectEmpty(t)
	})
}

// A renewal that was sent before a re-entry with a shorter lease, and answered after it, says nothing about the lease.
func TestRenewalOvertakenByReentry(t *testing.T) {
	slow := func(context.Context, errand) outcome {
		time.Sleep(5 * time.Second)
		return outcome{done: true}
	}
	inKennel(t, slow, func(t *testing.T, k *kennel) {
		h := k.hold(t, lock.Request{Key: "k"})
		time.Sleep(12 * time.Second) // the renewal of 10s is under way
		k.watchdog.mu.Lock()
		set := h.claim.set(6 * time.Second)
		set.answered(k.watchdog, answer{values: []int64{1}, sent: time.Now()})
		k.watchdog.watch(h.claim)
		k.watchdog.mu.Unlock()
		time.Sleep(4 * time.Second)
		k.watchdog.mu.Lock()
		defer k.watchdog.mu.Unlock()
		if left := time.Until(h.claim.until); left > 2*time.Second {
			t.Errorf("claim is taken for good for %v, but Redis was given 6s four seconds ago", left)
		}
	})
}

func TestUndoGoesOnUntilAnswered(t *testing.T) {
	fails := 5
	flaky := func(context.Context, errand) outcome {
		if fails--; fails >= 0 {
			return outcome{err: errors.New("reset")}
		}
		return outcome{done: true}
	}
	inKennel(t, flaky, func(t *testing.T, k *kennel) {
		cl := &claim{name: "k", family: plain{}, holder: "h", index: -1}
		k.lockedUndo(cl)
		<-cl.undone
		time.Sleep(time.Minute)
		if at, _ := k.asked(); len(at) != 6 || at[5] != 5*time.Second {
			t.Errorf("removals at %v, want one each second until the sixth is answered", at)
		}
		k.expectEmpty(t)
	})
}

// Nobody can tell any more what a removal that failed for a whole lease would remove.
func TestUndoEndsWithTheLease(t *testing.T) {
	inKennel(t, func(context.Context, errand) outcome { return outcome{err: redis.ErrClosed} }, func(t *testing.T, k *kennel) {
		start := time.Now()
		cl := &claim{name: "k", family: plain{}, holder: "h", index: -1}
		k.lockedUndo(cl)
		<-cl.undone
		if d := time.Since(start); d != 30*time.Second {
			t.Errorf("given up after %v, want 30s", d)
		}
	})
}
