package redisson_test

import (
	"fmt"

	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson"
	"github.com/redis/go-redis/v9"
)

// What somebody does who looks at locks, and frees them.

// force frees locks that somebody else has made, with waiters of all sorts, from whoever has them and from those who were seen.
func (u *aclUse) force() error {
	ctx, maker := u.t.Context(), onClient(u.t, u.stock)
	queue, deadlines := "redisson_lock_queue:{"+aclName+"}", "redisson_lock_timeout:{"+aclName+"}"
	for _, kind := range []lock.Kind{lock.Exclusive, lock.Fair, lock.Write} {
		for _, from := range []bool{false, true} {
			r := lock.Request{Key: aclName, Kind: kind}
			holder := redisson.HolderID(acquire(ctx, u.t, maker, r).Context(), maker, aclName, kind)
			if kind == lock.Fair {
				const dead, number = "dead:", 1 << 62 // two waiters of ours
				check(u.t, u.stock.RPush(ctx, queue, fmt.Sprint(dead, number), fmt.Sprint(dead, number+1), "ghost:1").Err())
				check(u.t, u.stock.ZAdd(ctx, deadlines, redis.Z{Score: 1, Member: fmt.Sprint(dead, number)}).Err())
			}
			free := func() (bool, error) { return u.b.ForceUnlock(u.ctx, aclName) }
			if from {
				free = func() (bool, error) { return u.b.ForceUnlockFrom(u.ctx, aclName, []string{holder}) }
			}
			if ok, err := free(); !ok || err != nil {
				return fmt.Errorf("freed from those who were seen: %v: %v, %w", from, ok, err)
			}
			check(u.t, u.stock.Del(ctx, queue, deadlines).Err())
		}
	}
	return nil
}

// inspect looks at what there can be, as somebody else has made it.
func (u *aclUse) inspect() error {
	ctx, maker := u.t.Context(), onClient(u.t, u.stock)
	for _, kind := range []lock.Kind{lock.Fenced, lock.Read, lock.Permit} {
		acquire(ctx, u.t, maker, lock.Request{Key: aclName + kind.String(), Kind: kind, Limit: 1})
	}
	check(u.t, u.stock.Set(ctx, aclName+"number", 1, 0).Err())
	var readers []any
	for i := range 1200 {
		readers = append(readers, fmt.Sprintf("6ba7b810-9dad-41d1-80b4-%012d:1", i), 1)
	}
	check(u.t, u.stock.HSet(ctx, aclName, readers...).Err())
	check(u.t, u.stock.RPush(ctx, "redisson_lock_queue:{"+aclName+"}", "a:1").Err())
	deadlines := []redis.Z{{Score: 1e9, Member: "a:1"}}
	for i := range 1000 { // of others, and earlier
		deadlines = append(deadlines, redis.Z{Score: float64(i), Member: fmt.Sprint("b:", i)})
	}
	check(u.t, u.stock.ZAdd(ctx, "redisson_lock_timeout:{"+aclName+"}", deadlines...).Err())
	for _, name := range []string{aclName, aclName + "number", aclName + "fenced", aclName + "none"} {
		o, err := u.a.Inspect(u.ctx, name)
		if err != nil {
			return err
		}
		if name == aclName && (len(o.Queue) != 1 || o.Queue[0].Until.IsZero()) || name == aclName+"fenced" && o.Token != 1 {
			return fmt.Errorf("of %s there is %+v", name, o)
		}
	}
	return u.search(4)
}

// search looks for locks, and at those that it has found once more.
func (u *aclUse) search(want int) error {
	var p redisson.Progress
	var keys []string
	for o, err := range u.a.Objects(u.ctx, "order:*", redisson.OnProgress(func(now redisson.Progress) { p = now })) {
		if err != nil {
			return err
		}
		keys = append(keys, o.Key)
	}
	if len(keys) != want || p.Total == 0 {
		return fmt.Errorf("there are %q, want %d; %+v", keys, want, p)
	}
	for o, err := range u.a.InspectKeys(u.ctx, keys) {
		if err != nil || o.Type == redisson.TypeNone {
			return fmt.Errorf("there is %+v, %w", o, err)
		}
	}
	return nil
}
