package redisson_test

import (
	"fmt"

	"github.com/latchkey-go/latchkey/lock"
	"github.com/redis/go-redis/v9"
)

// What somebody does who looks at locks, and frees them.

// force frees locks that somebody else has made, with waiters of all sorts.
func (u *aclUse) force() error {
	ctx, maker := u.t.Context(), onClient(u.t, u.admin)
	queue, deadlines := "redisson_lock_queue:{"+aclName+"}", "redisson_lock_timeout:{"+aclName+"}"
	for _, kind := range []lock.Kind{lock.Exclusive, lock.Fair, lock.Write} {
		acquire(ctx, u.t, maker, lock.Request{Key: aclName, Kind: kind})
		if kind == lock.Fair {
			check(u.t, u.admin.RPush(ctx, queue, "dead:1", "ghost:1").Err())
			check(u.t, u.admin.ZAdd(ctx, deadlines, redis.Z{Score: 1, Member: "dead:1"}).Err())
		}
		if ok, err := u.b.ForceUnlock(u.ctx, aclName); !ok || err != nil {
			return fmt.Errorf("ForceUnlock = %v, %w", ok, err)
		}
		check(u.t, u.admin.Del(ctx, queue, deadlines).Err())
	}
	return nil
}

// inspect looks at what there can be, as somebody else has made it.
func (u *aclUse) inspect() error {
	ctx, maker := u.t.Context(), onClient(u.t, u.admin)
	for _, kind := range []lock.Kind{lock.Fenced, lock.Read, lock.Permit} {
		acquire(ctx, u.t, maker, lock.Request{Key: aclName + kind.String(), Kind: kind, Limit: 1})
	}
	check(u.t, u.admin.Set(ctx, aclName+"number", 1, 0).Err())
	var readers []any
	for i := range 1200 {
		readers = append(readers, fmt.Sprintf("6ba7b810-9dad-41d1-80b4-%012d:1", i), 1)
	}
	check(u.t, u.admin.HSet(ctx, aclName, readers...).Err())
	check(u.t, u.admin.RPush(ctx, "redisson_lock_queue:{"+aclName+"}", "a:1").Err())
	check(u.t, u.admin.ZAdd(ctx, "redisson_lock_timeout:{"+aclName+"}", redis.Z{Score: 1, Member: "a:1"}).Err())
	for _, name := range []string{aclName, aclName + "number", aclName + "fenced", aclName + "none"} {
		o, err := u.a.Inspect(u.ctx, name)
		if err != nil {
			return err
		}
		if name == aclName && len(o.Queue) != 1 || name == aclName+"fenced" && o.Token != 1 {
			return fmt.Errorf("of %s there is %+v", name, o)
		}
	}
	found := 0
	for _, err := range u.a.Objects(u.ctx, "order:*") {
		if found++; err != nil {
			return err
		}
	}
	if found != 4 {
		return fmt.Errorf("%d objects, want 4", found)
	}
	return nil
}
