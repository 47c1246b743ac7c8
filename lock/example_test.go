package lock_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/memlock"
)

func Example() {
	ctx := context.Background()
	var locker lock.Locker = memlock.New() // or any other

	hold, err := locker.Acquire(ctx, lock.Request{Key: "order:42", Wait: 2 * time.Second, Lease: time.Minute})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = locker.Acquire(ctx, lock.Request{Key: "order:42"})
	if busy, ok := errors.AsType[*lock.BusyError](err); ok {
		fmt.Println("busy, free in", busy.Remaining.Round(time.Minute))
	}
	fmt.Println("released:", hold.Release(ctx))
	fmt.Println("again:", hold.Release(ctx))
	// Output:
	// busy, free in 1m0s
	// released: <nil>
	// again: lock: not held by this owner
}

// Code under a lock may take it again, because the owner travels in the context. Work that must not take part in it starts
// with an owner of its own.
func ExampleNewOwner() {
	var locker lock.Locker = memlock.New()
	try := func(ctx context.Context) error {
		hold, err := locker.Acquire(ctx, lock.Request{Key: "order:42"})
		if err != nil {
			return err
		}
		return hold.Release(context.WithoutCancel(ctx))
	}

	hold, err := locker.Acquire(context.Background(), lock.Request{Key: "order:42"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("the same owner:", try(hold.Context()))
	fmt.Println("another owner:", errors.Is(try(lock.NewOwner(hold.Context())), lock.ErrBusy))
	fmt.Println("released:", hold.Release(context.Background()))
	// Output:
	// the same owner: <nil>
	// another owner: true
	// released: <nil>
}

// The context of a hold says why the lock ended.
func ExampleHold() {
	var locker lock.Locker = memlock.New()
	hold, err := locker.Acquire(context.Background(), lock.Request{Key: "order:42", MaxHold: time.Millisecond})
	if err != nil {
		fmt.Println(err)
		return
	}
	<-hold.Context().Done()
	cause := context.Cause(hold.Context())
	fmt.Println("lost:", errors.Is(cause, lock.ErrLost))
	fmt.Println("held for too long:", errors.Is(cause, lock.ErrMaxHold))
	fmt.Println("released:", !errors.Is(hold.Release(context.Background()), lock.ErrLost))
	// Output:
	// lost: true
	// held for too long: true
	// released: false
}
