package redisson_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson"
	"github.com/redis/go-redis/v9"
)

// example returns a client of an embedded Redis, so that the examples run anywhere.
func example(opts ...redisson.Option) (client *redisson.Client, stop func()) {
	m, err := miniredis.Run()
	if err != nil {
		log.Fatal(err)
	}
	rdb := redis.NewClient(&redis.Options{Addr: m.Addr()})
	client, err = redisson.New(rdb, opts...)
	if err != nil {
		log.Fatal(err)
	}
	return client, func() {
		_ = client.Close()
		_ = rdb.Close()
		m.Close()
	}
}

func ExampleNew() {
	rdb := redis.NewClient(&redis.Options{Addr: "localhost:6379"})
	defer rdb.Close()
	client, err := redisson.New(rdb,
		redisson.WatchdogTimeout(20*time.Second), // a crashed holder blocks the others for no longer
		redisson.NameMapper(func(name string) string { return "shop:" + name }),
	)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	fmt.Println(len(client.ID()))
	// Output: 36
}

func ExampleLock_Lock() {
	client, stop := example()
	defer stop()
	ctx := context.Background()

	l := client.Lock("order:42")
	held, err := l.Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	again, err := l.Lock(held) // the same owner re-enters
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(l.HoldCount(again))

	fmt.Println(l.Unlock(again), l.Unlock(held))
	fmt.Println(errors.Is(l.Unlock(held), lock.ErrNotHeld))
	// Output:
	// 2
	// <nil> <nil>
	// true
}

func ExampleLock_TryLock() {
	client, stop := example()
	defer stop()
	ctx := context.Background()

	l := client.Lock("order:42")
	held, ok, err := l.TryLock(ctx, 0, 10*time.Second) // do not wait, hold for ten seconds at most
	fmt.Println(ok, err)
	_, ok, err = l.TryLock(ctx, 50*time.Millisecond, 0) // another owner
	fmt.Println(ok, err)
	fmt.Println(l.Unlock(held))
	// Output:
	// true <nil>
	// false <nil>
	// <nil>
}

func ExampleLock_ForceUnlock() {
	client, stop := example()
	defer stop()
	ctx := context.Background()

	l := client.Lock("order:42")
	held, err := l.Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	freed, err := l.ForceUnlock(ctx)
	fmt.Println(freed, err)
	fmt.Println(errors.Is(context.Cause(held), lock.ErrLost))
	// Output:
	// true <nil>
	// true
}

func ExampleClient_Acquire() {
	client, stop := example()
	defer stop()
	ctx := context.Background()

	hold, err := client.Acquire(ctx, lock.Request{Key: "order:42", Wait: time.Second})
	if err != nil {
		log.Fatal(err)
	}
	_, err = client.Acquire(ctx, lock.Request{Key: "order:42"})
	fmt.Println(errors.Is(err, lock.ErrBusy))
	fmt.Println(hold.Release(ctx))
	// Output:
	// true
	// <nil>
}

func ExampleReadWriteLock() {
	client, stop := example()
	defer stop()
	rw := client.ReadWriteLock("catalogue")

	writing, err := rw.WriteLock().Lock(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	reading, err := rw.ReadLock().Lock(context.WithoutCancel(writing)) // or the end of writing would end it
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(rw.WriteLock().Unlock(writing)) // from now on others may read, too
	fmt.Println(reading.Err(), rw.ReadLock().Unlock(reading))
	// Output:
	// <nil>
	// <nil> <nil>
}

func ExampleFencedLock() {
	client, stop := example()
	defer stop()

	l := client.FencedLock("account:7")
	for range 2 {
		held, err := l.Lock(context.Background())
		if err != nil {
			log.Fatal(err)
		}
		token, ok := l.Token(held) // goes along with what is written under the lock
		fmt.Println(token, ok)
		_ = l.Unlock(held)
	}
	// Output:
	// 1 true
	// 2 true
}

func ExampleClient_FairLock() {
	client, stop := example()
	defer stop()

	l := client.FairLock("printer")
	held, ok, err := l.TryLock(context.Background(), time.Second, 0) // waits in line for a second at most
	fmt.Println(ok, err, l.Unlock(held))
	// Output: true <nil> <nil>
}

func ExampleClient_Inspect() {
	client, stop := example()
	defer stop()
	ctx := context.Background()
	held, err := client.Lock("order:42").Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = client.Lock("order:42").Unlock(held) }()

	o, err := client.Inspect(ctx, "order:42")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(o.Type, o.TTL.Round(time.Minute/2))
	for _, h := range o.Holders {
		fmt.Println(h.Client == client.ID(), h.Count)
	}
	// Output:
	// lock 30s
	// true 1
}

func ExampleClient_Objects() {
	client, stop := example()
	defer stop()
	ctx := context.Background()
	held, err := client.ReadWriteLock("order:42").ReadLock().Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = client.ReadWriteLock("order:42").ReadLock().Unlock(held) }()

	for o, err := range client.Objects(ctx, "order:*") {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(o.Key, o.Type, o.Mode)
	}
	// Output: order:42 readwrite read
}

func ExampleName() {
	client, stop := example(redisson.Name("orders-7f9c"))
	defer stop()
	ctx := context.Background()
	held, err := client.Lock("order:42").Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = client.Lock("order:42").Unlock(held) }()

	for who := (redisson.Identity{}); who.Name == ""; { // it says so in the background
		o, err := client.Inspect(ctx, "order:42")
		if err != nil {
			log.Fatal(err)
		}
		if who = o.Holders[0].Who; who.Name != "" {
			fmt.Println(who.Name, who.PID == os.Getpid())
		}
	}
	// Output: orders-7f9c true
}

func ExampleDescribe() {
	client, stop := example(redisson.Name("orders-7f9c"), redisson.Describe())
	defer stop()
	ctx := context.Background()
	hold, err := client.Acquire(ctx, lock.Request{Key: "order:42", Holder: "settlement"}) // as guards do
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = hold.Release(ctx) }()

	for about := (*redisson.About)(nil); about == nil; { // it says so in the background
		o, err := client.Inspect(ctx, "order:42")
		if err != nil {
			log.Fatal(err)
		}
		if about = o.Holders[0].About; about != nil {
			fmt.Println(o.Holders[0].Who.Name, about.For, time.Since(about.Since) < time.Minute)
		}
	}
	// Output: orders-7f9c settlement true
}

func ExampleClient_Free() {
	client, stop := example()
	defer stop()
	ctx := context.Background()
	if _, err := client.Lock("order:42").Lock(ctx); err != nil {
		log.Fatal(err)
	}

	fmt.Println(client.Free(ctx, redisson.Freed{Key: "order:42", Who: "on call", Reason: "it hangs, ticket 7"}))
	frees, err := client.Frees(ctx, 10)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(frees[0].Key, frees[0].Who, frees[0].Reason)
	// Output:
	// true <nil>
	// order:42 on call it hangs, ticket 7
}

func ExampleClient_Hold() {
	client, stop := example()
	defer stop()
	ctx := context.Background()
	if err := client.Hold(ctx, "order:42", time.Hour, "on call", "moving the ledger"); err != nil {
		log.Fatal(err)
	}

	_, err := client.Acquire(ctx, lock.Request{Key: "order:42"})
	busy, _ := errors.AsType[*lock.BusyError](err)
	fmt.Println(busy.Elsewhere)
	// Output: on call: moving the ledger
}

func ExampleClient_ForceUnlock() {
	client, stop := example()
	defer stop()
	ctx := context.Background()
	held, err := client.Lock("order:42").Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}

	fmt.Println(client.ForceUnlock(ctx, "order:42")) // in any process
	<-held.Done()
	fmt.Println(errors.Is(context.Cause(held), redisson.ErrForced))
	fmt.Println(client.ForceUnlock(ctx, "order:42"))
	// Output:
	// true <nil>
	// true
	// false <nil>
}
