package redisson_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson"
)

// A transfer holds both accounts, whichever way the money goes.
func ExampleMultiLock() {
	client, stop := example()
	defer stop()
	ctx := context.Background()

	accounts, err := redisson.NewMultiLock(client.Lock("account:7"), client.Lock("account:3"))
	if err != nil {
		log.Fatal(err)
	}
	held, err := accounts.Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	locked, err := client.Lock("account:3").IsLocked(ctx)
	fmt.Println(locked, err)
	fmt.Println(accounts.Unlock(held))
	fmt.Println(errors.Is(accounts.Unlock(held), lock.ErrNotHeld))
	// Output:
	// true <nil>
	// <nil>
	// true
}

func ExampleMultiLock_TryLock() {
	client, stop := example()
	defer stop()
	ctx := context.Background()

	if _, err := client.Lock("account:3").Lock(ctx); err != nil {
		log.Fatal(err)
	}
	accounts, err := redisson.NewMultiLock(client.Lock("account:2"), client.Lock("account:3"))
	if err != nil {
		log.Fatal(err)
	}
	_, ok, err := accounts.TryLock(ctx, 50*time.Millisecond, 0)
	fmt.Println(ok, err)
	locked, err := client.Lock("account:2").IsLocked(ctx) // not kept either
	fmt.Println(locked, err)
	// Output:
	// false <nil>
	// false <nil>
}

// One of three servers goes down, and the lock stays usable.
func ExampleRedLock() {
	ctx := context.Background()
	var locks []redisson.Member
	var stops []func()
	for range 3 {
		client, stop := example() // each of another server
		locks, stops = append(locks, client.Lock("leader")), append(stops, stop)
	}
	defer stops[0]()
	defer stops[1]()

	leader, err := redisson.NewRedLock(locks...)
	if err != nil {
		log.Fatal(err)
	}
	stops[2]()
	held, ok, err := leader.TryLock(ctx, time.Second, 10*time.Second)
	fmt.Println(ok, err)
	_, ok, err = leader.TryLock(ctx, 0, 10*time.Second) // another owner
	fmt.Println(ok, err)
	fmt.Println(leader.Unlock(held))
	// Output:
	// true <nil>
	// false <nil>
	// <nil>
}

// Locks of several kinds are taken in one question, all or none, and held one by one.
func ExampleClient_Reserve() {
	client, stop := example()
	defer stop()
	ctx := context.Background()

	wanted := []lock.Request{{Key: "stock:7", Kind: lock.Read}, {Key: "order:42"}}
	reserved, n, leave, err := client.Reserve(ctx, wanted)
	if err != nil {
		log.Fatal(err) // lock.ErrBusy if one of them is
	}
	defer leave()
	fmt.Println(n, "of", len(wanted))

	var holds []lock.Hold
	for _, r := range wanted {
		hold, err := client.Acquire(reserved, r)
		if err != nil {
			log.Fatal(err)
		}
		holds, reserved = append(holds, hold), hold.Context()
	}
	fmt.Println(client.ReleaseAll(ctx, holds))
	// Output:
	// 2 of 2
	// <nil>
}
