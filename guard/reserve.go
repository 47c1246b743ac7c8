package guard

import (
	"context"
	"errors"
	"reflect"

	"github.com/latchkey-go/latchkey/keyexpr"
	"github.com/latchkey-go/latchkey/lock"
)

// reserver is a locker that takes several locks in one question.
type reserver interface {
	Reserve(ctx context.Context, rs []lock.Request) (reserved context.Context, n int, leave func(), err error)
}

// reserve takes the locks of keys that are free now: n of them, from the first one on. An Acquire under the returned
// context gets them. The error is that of a call that can't have its locks.
func (c *call) reserve(ctx context.Context, request lock.Request, keys []string) (_ context.Context, n int, leave func(), err error) {
	all, ok := c.locker.(reserver)
	if !ok {
		return ctx, len(keys), func() {}, nil // as takeAll asks for each anyway
	}
	rs := make([]lock.Request, len(keys))
	for i, key := range keys {
		rs[i] = request
		rs[i].Key = key
	}
	return all.Reserve(ctx, rs)
}

// lookAhead renders the keys of the guards behind this one, if all of them take their locks from the same locker and in
// any case. Facts are read once: the calls of these guards use the keys rendered here.
func (c *call) lookAhead(facts keyexpr.Facts) {
	if _, ok := c.locker.(reserver); !ok || c.spec.bounded() || c.spec.Busy == Replace || !reflect.TypeOf(c.locker).Comparable() {
		return
	}
	var ahead [][]string
	for r := c.next; r != nil; r = r.next {
		on := r.entry == nil || Mode(r.entry.mode.Load()) == On
		if r.locker != c.locker || r.when != nil || r.keyFunc != nil || r.expressions != nil || r.spec.bounded() || r.spec.Busy == Replace || !on {
			return
		}
		keys, err := r.key.AppendKeys(c.ctx, nil, facts)
		if err != nil || len(keys) == 0 {
			return
		}
		ahead = append(ahead, keys)
	}
	c.ahead, c.joined = ahead, true
}

// reserveStack takes the locks of keys and of the guards behind this one, if all of them are free. It returns for how
// many of keys it did. An error counts only where a call does not wait. A call that waits is refused by the guard whose
// lock is busy, or waits for Redis.
func (c *call) reserveStack(ctx context.Context, keys []string) (context.Context, int, error) {
	var rs []lock.Request
	want := func(request lock.Request, keys []string) {
		for _, key := range keys {
			request.Key, request.Wait = key, 0
			rs = append(rs, request)
		}
	}
	want(*c.request, keys)
	for i, r := 0, c.next; r != nil; i, r = i+1, r.next {
		want(r.request, c.ahead[i])
	}
	reserved, n, leave, err := c.locker.(reserver).Reserve(ctx, rs)
	c.leaveAhead = leave
	if err != nil {
		n = 0
		if c.request.Wait != 0 || errors.Is(err, lock.ErrBusy) {
			err = nil
		}
	}
	return reserved, min(n, len(keys)), err
}
