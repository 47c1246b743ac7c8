package setnxlock_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/setnxlock"
	"github.com/redis/go-redis/v9"
)

// server stands for the Redis of the examples.
func server() (rdb *redis.Client, stop func()) {
	m := miniredis.NewMiniRedis()
	if err := m.Start(); err != nil {
		panic(err)
	}
	rdb = redis.NewClient(&redis.Options{Addr: m.Addr()})
	return rdb, func() {
		_ = rdb.Close()
		m.Close()
	}
}

func Example() {
	rdb, stop := server()
	defer stop()
	ctx := context.Background()
	locker, err := setnxlock.New(rdb, setnxlock.Watchdog(10*time.Second))
	if err != nil {
		fmt.Println(err)
		return
	}
	hold, err := locker.Acquire(ctx, lock.Request{Key: "order:42", Wait: time.Second})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = locker.Acquire(ctx, lock.Request{Key: "order:42"})
	fmt.Println("busy:", errors.Is(err, lock.ErrBusy))
	fmt.Println("released:", hold.Release(ctx))
	// Output:
	// busy: true
	// released: <nil>
}

// A job that ShedLock runs in Java, with @SchedulerLock(name = "report", lockAtLeastFor = "1m"), and a program in Go exclude each other.
func ExampleShedLock() {
	rdb, stop := server()
	defer stop()
	ctx := context.Background()
	locker, err := setnxlock.New(rdb, setnxlock.ShedLock("default"))
	if err != nil {
		fmt.Println(err)
		return
	}
	hold, err := locker.Acquire(ctx, lock.Request{Key: "report", Lease: 10 * time.Minute})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(rdb.Keys(ctx, "*").Val())
	if k, ok := hold.(interface {
		Keep(ctx context.Context, d time.Duration) error
	}); ok {
		fmt.Println("kept:", k.Keep(ctx, time.Minute)) // as lockAtLeastFor does
	}
	_, err = locker.Acquire(ctx, lock.Request{Key: "report"})
	fmt.Println("busy:", errors.Is(err, lock.ErrBusy))
	// Output:
	// [job-lock:default:report]
	// kept: <nil>
	// busy: true
}

// The key of a method with @Lock4j(name = "pay", keys = "#order.id") is what package keyexpr/spel makes of the annotation.
func ExampleLock4j() {
	rdb, stop := server()
	defer stop()
	ctx := context.Background()
	locker, err := setnxlock.New(rdb, setnxlock.Lock4j())
	if err != nil {
		fmt.Println(err)
		return
	}
	hold, err := locker.Acquire(ctx, lock.Request{Key: "lock4j:pay#42"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(rdb.Keys(ctx, "*").Val())
	fmt.Println("released:", hold.Release(ctx))
	// Output:
	// [lock4j:pay#42]
	// released: <nil>
}

// RedisLockRegistry in Java, with registryKey "orders": registry.obtain("42").
func ExampleRedisLockRegistry() {
	rdb, stop := server()
	defer stop()
	ctx := context.Background()
	locker, err := setnxlock.New(rdb, setnxlock.RedisLockRegistry("orders"))
	if err != nil {
		fmt.Println(err)
		return
	}
	hold, err := locker.Acquire(ctx, lock.Request{Key: "42"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(rdb.Keys(ctx, "*").Val())
	fmt.Println("released:", hold.Release(ctx))
	// Output:
	// [orders:42]
	// released: <nil>
}

// Locks of bsm/redislock: redislock.Obtain(ctx, rdb, "order:42", time.Minute, nil).
func ExampleRedislock() {
	rdb, stop := server()
	defer stop()
	locker, err := setnxlock.New(rdb, setnxlock.Redislock())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("free:", locker.Peek(context.Background(), lock.Request{Key: "order:42"}) == nil)
	// Output: free: true
}

// Locks of redsync: redsync.New(goredis.NewPool(rdb)).NewMutex("order:42").
func ExampleRedsync() {
	rdb, stop := server()
	defer stop()
	locker, err := setnxlock.New(rdb, setnxlock.Redsync())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("free:", locker.Peek(context.Background(), lock.Request{Key: "order:42"}) == nil)
	// Output: free: true
}

// All locks of a program begin with its name.
func ExampleKeyText() {
	rdb, stop := server()
	defer stop()
	ctx := context.Background()
	locker, err := setnxlock.New(rdb, setnxlock.KeyText(func(key string) string { return "shop:" + key }))
	if err != nil {
		fmt.Println(err)
		return
	}
	hold, err := locker.Acquire(ctx, lock.Request{Key: "order:42"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(rdb.Keys(ctx, "*").Val())
	fmt.Println("released:", hold.Release(ctx))
	// Output:
	// [shop:order:42]
	// released: <nil>
}
