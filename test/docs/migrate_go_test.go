package docs

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/lock/setnxlock"
	"github.com/latchkey-go/latchkey/redisson"
)

// settle is the work of the programs in docs/migrate.
type settle func(ctx context.Context, id string) (string, error)

func redislockBefore(rdb *redis.Client, work settle) settle {
	locker := redislock.New(rdb)
	return func(ctx context.Context, id string) (string, error) {
		retry := redislock.LimitRetry(redislock.LinearBackoff(50*time.Millisecond), 4)
		l, err := locker.Obtain(ctx, "order:"+id, 30*time.Second, &redislock.Options{RetryStrategy: retry})
		if err != nil {
			return "", err
		}
		defer func() { _ = l.Release(context.WithoutCancel(ctx)) }()
		return work(ctx, id)
	}
}

func redislockAfter(rdb *redis.Client, work settle) (settle, error) {
	locker, err := setnxlock.New(rdb, setnxlock.Redislock())
	if err != nil {
		return nil, err
	}
	g, err := guard.New(locker, guard.Name("order.settle"), guard.Key("order:#{raw(req)}"), guard.Wait(200*time.Millisecond))
	if err != nil {
		return nil, err
	}
	return guard.Func(g, work)
}

func redsyncBefore(rdb *redis.Client, work settle) settle {
	rs := redsync.New(goredis.NewPool(rdb))
	return func(ctx context.Context, id string) (string, error) {
		m := rs.NewMutex("order:"+id, redsync.WithExpiry(30*time.Second), redsync.WithTries(4), redsync.WithRetryDelay(50*time.Millisecond))
		if err := m.LockContext(ctx); err != nil {
			return "", err
		}
		defer func() { _, _ = m.UnlockContext(context.WithoutCancel(ctx)) }()
		return work(ctx, id)
	}
}

func redsyncAfter(rdb *redis.Client, work settle) (settle, error) {
	locker, err := setnxlock.New(rdb, setnxlock.Redsync())
	if err != nil {
		return nil, err
	}
	g, err := guard.New(locker, guard.Name("order.settle"), guard.Key("order:#{raw(req)}"), guard.Wait(200*time.Millisecond))
	if err != nil {
		return nil, err
	}
	return guard.Func(g, work)
}

// both takes the old lock and the new one, for the time in which some machines know only one of them.
func both(rdb *redis.Client, work settle) (settle, error) {
	old, err := setnxlock.New(rdb, setnxlock.Redislock())
	if err != nil {
		return nil, err
	}
	client, err := redisson.New(rdb)
	if err != nil {
		return nil, err
	}
	before, err := guard.New(old, guard.Name("order.settle.old"), guard.Key("order:#{raw(req)}"), guard.Wait(200*time.Millisecond))
	if err != nil {
		return nil, err
	}
	after, err := guard.New(client, guard.Name("order.settle"), guard.Key("{order:#{req}}:v2"), guard.Wait(200*time.Millisecond))
	if err != nil {
		return nil, err
	}
	stack, err := guard.Stack(before, after)
	if err != nil {
		return nil, err
	}
	return guard.Func(stack, work)
}

func after(rdb *redis.Client, work settle) (settle, error) {
	client, err := redisson.New(rdb)
	if err != nil {
		return nil, err
	}
	g, err := guard.New(client, guard.Name("order.settle"), guard.Key("{order:#{req}}:v2"), guard.Wait(200*time.Millisecond))
	if err != nil {
		return nil, err
	}
	return guard.Func(g, work)
}

// ids are a plain one, and those that a hole without raw writes in another way than whoever joins texts.
var ids = []string{"42", "a b", "50%", "{x}", "a:b", "Grün-東京", "tab\tand\xff", "%20", " 7 "}

// During a deploy, old and new machines are up at the same time: at each step of the pages, whoever is inside keeps the others out.
func TestMigrationStepsExcludeEachOther(t *testing.T) {
	old := func(f func(*redis.Client, settle) settle) func(*redis.Client, settle) (settle, error) {
		return func(rdb *redis.Client, work settle) (settle, error) { return f(rdb, work), nil }
	}
	type step = func(*redis.Client, settle) (settle, error)
	for _, tt := range []struct {
		name   string
		before step
		after  step
	}{
		{"redislock to setnxlock", old(redislockBefore), redislockAfter},
		{"redsync to setnxlock", old(redsyncBefore), redsyncAfter},
		{"redislock to both", old(redislockBefore), both},
		{"setnxlock to both", redislockAfter, both},
		{"both to redisson", both, after},
	} {
		for _, sides := range [][2]step{{tt.before, tt.after}, {tt.after, tt.before}} {
			t.Run(tt.name, func(t *testing.T) {
				t.Parallel()
				rdb := redistest.Start(t).Client(t)
				for _, id := range ids {
					excludes(t, rdb, sides[0], sides[1], id)
				}
			})
		}
	}
}

func excludes(t *testing.T, rdb *redis.Client, first, second func(*redis.Client, settle) (settle, error), id string) {
	t.Helper()
	inside, leave := make(chan struct{}), make(chan struct{})
	holder, err := first(rdb, func(context.Context, string) (string, error) { close(inside); <-leave; return "first", nil })
	if err != nil {
		t.Fatal(err)
	}
	other, err := second(rdb, func(context.Context, string) (string, error) { return "second", nil })
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { _, err := holder(t.Context(), id); done <- err }()
	<-inside
	if got, err := other(t.Context(), id); err == nil {
		t.Errorf("order %q: two holders, as %q ran beside the first", id, got)
	} else if taken := new(redsync.ErrTaken); !errors.Is(err, guard.ErrBusy) && !errors.Is(err, redislock.ErrNotObtained) && !errors.As(err, &taken) {
		t.Errorf("order %q: the error is %v, want busy", id, err)
	}
	close(leave)
	if err := <-done; err != nil {
		t.Errorf("order %q: %v", id, err)
	}
	if got, err := other(t.Context(), id); err != nil || got != "second" {
		t.Errorf("order %q, after the first: %q, %v", id, got, err)
	}
}
