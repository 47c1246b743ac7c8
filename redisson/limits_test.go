package redisson_test

import (
	"errors"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson"
)

// permitOf asks for a permit of k with a limit of its own.
func permitOf(limit int) lock.Request {
	return lock.Request{Key: "k", Kind: lock.Permit, Limit: limit}
}

// checkLimit fails t unless an Acquire with that limit, a Peek and a Reserve say whether there is room, and changes nothing.
func checkLimit(t *testing.T, c *redisson.Client, limit int, room bool) {
	t.Helper()
	want := lock.ErrBusy
	if room {
		want = nil
	}
	if err := c.Peek(t.Context(), permitOf(limit)); !errors.Is(err, want) {
		t.Errorf("Peek with a limit of %d: %v, want %v", limit, err, want)
	}
	ctx, n, leave, err := c.Reserve(t.Context(), []lock.Request{permitOf(limit), {Key: "other"}})
	if !errors.Is(err, want) || room && n != 2 {
		t.Errorf("Reserve with a limit of %d: %d, %v, want %v", limit, n, err, want)
	}
	if leave(); ctx == nil {
		t.Error("no context")
	}
	h, err := c.Acquire(t.Context(), permitOf(limit))
	if !errors.Is(err, want) {
		t.Errorf("Acquire with a limit of %d: %v, want %v", limit, err, want)
	}
	if err == nil {
		release(t, h)
	}
}

// Each call goes by its own limit, while others hold permits that they got by another one: a limit that goes up lets the next call in, and
// one that goes down keeps it out until fewer are inside. The number in Redis is never negative, so that each release wakes who waits.
func TestLimitsThatChange(t *testing.T) {
	t.Parallel()
	s := redistest.Any(t)
	rdb, c, other := s.Client(t), newClient(t, s), newClient(t, s)
	free := func(want int) {
		t.Helper()
		if got := rdb.Get(t.Context(), "k").Val(); got != strconv.Itoa(want) {
			t.Errorf("%q are free in Redis, want %d", got, want)
		}
	}
	holds := []lock.Hold{acquire(t.Context(), t, c, permitOf(2)), acquire(t.Context(), t, other, permitOf(2))}
	free(0)
	checkLimit(t, c, 1, false)
	checkLimit(t, c, 2, false)
	checkLimit(t, other, 3, true)
	holds = append(holds, acquire(t.Context(), t, other, permitOf(5)), acquire(t.Context(), t, c, permitOf(4)))
	free(0)
	for limit, room := range map[int]bool{1: false, 3: false, 4: false, 5: true, 10_000: true} {
		checkLimit(t, c, limit, room)
	}
	checkLimit(t, c, 1, false)
	if got, err := strconv.Atoi(rdb.Get(t.Context(), "k").Val()); err != nil || got < 0 {
		t.Errorf("%d are free in Redis, %v", got, err)
	}
	for i, h := range holds {
		release(t, h)
		left := len(holds) - 1 - i
		checkLimit(t, c, max(left, 1), left == 0)
		checkLimit(t, other, left+1, true)
	}
	if left := keys(t, rdb); len(left) != 0 {
		t.Errorf("keys %q are left", left)
	}
}

// Who waits with a large limit is woken by the release of a holder with a small one, also after others were refused with smaller ones yet.
func TestWaitersWithOtherLimitsAreWoken(t *testing.T) {
	t.Parallel()
	s := redistest.Any(t)
	c, other := newClient(t, s), newClient(t, s)
	holds := []lock.Hold{acquire(t.Context(), t, c, permitOf(3)), acquire(t.Context(), t, c, permitOf(3)), acquire(t.Context(), t, other, permitOf(3))}
	var waiters sync.WaitGroup
	got := make(chan int, 2)
	for _, limit := range []int{3, 1} {
		waiters.Go(func() {
			r := permitOf(limit)
			r.Wait = waits
			h, err := other.Acquire(t.Context(), r)
			if err != nil {
				t.Errorf("with a limit of %d: %v", limit, err)
				got <- 0
				return
			}
			got <- limit
			release(t, h)
		})
	}
	<-time.After(300 * time.Millisecond) // both wait
	checkLimit(t, c, 1, false)
	start := time.Now()
	release(t, holds[0])
	if limit := <-got; limit != 3 {
		t.Errorf("the waiter with a limit of %d came first", limit)
	}
	release(t, holds[1])
	release(t, holds[2])
	if limit := <-got; limit != 1 {
		t.Errorf("the waiter with a limit of %d came last", limit)
	}
	if took := ran(start); took > waits/4 {
		t.Errorf("woken after %v", took)
	}
	waiters.Wait()
	if left := keys(t, s.Client(t)); len(left) != 0 {
		t.Errorf("keys %q are left", left)
	}
}

// Where the number was removed, and those who count it have a small limit, those with a large one are woken all the same.
func TestLimitsThatChangeWhereTheNumberIsRemoved(t *testing.T) {
	t.Parallel()
	s := redistest.Any(t)
	rdb, c := s.Client(t), newClient(t, s)
	holds := []lock.Hold{acquire(t.Context(), t, c, permitOf(3)), acquire(t.Context(), t, c, permitOf(3)), acquire(t.Context(), t, c, permitOf(3))}
	rdb.Del(t.Context(), "k", "latchkey_permits:{k}")
	expectHeldByOthers(t.Context(), t, "with a limit of 1", c, permitOf(1))
	messages := observe(t, rdb, "redisson_sc:{k}")
	release(t, holds[0])
	expectMessage(t, messages, "1")
	checkLimit(t, c, 3, true)
	checkLimit(t, c, 2, false)
	release(t, holds[1])
	release(t, holds[2])
	if left := keys(t, rdb); len(left) != 0 {
		t.Errorf("keys %q are left", left)
	}
}

// A semaphore that others have set up keeps its number, whatever limits calls have.
func TestLimitsOfASemaphoreOfOthers(t *testing.T) {
	t.Parallel()
	s := redistest.Any(t)
	c := newClient(t, s)
	if ok, err := c.PermitExpirableSemaphore("k").TrySetPermits(t.Context(), 2); !ok || err != nil {
		t.Fatal(ok, err)
	}
	first := acquire(t.Context(), t, c, permitOf(1))
	checkLimit(t, c, 1, true)
	second := acquire(t.Context(), t, c, permitOf(1))
	checkLimit(t, c, 100, false)
	release(t, first)
	release(t, second)
	if n, err := c.PermitExpirableSemaphore("k").AvailablePermits(t.Context()); n != 2 || err != nil {
		t.Errorf("%d are free, %v", n, err)
	}
}
