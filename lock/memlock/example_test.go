package memlock_test

import (
	"context"
	"fmt"
	"time"

	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/memlock"
)

func Example() {
	ctx := context.Background()
	locker := memlock.New()

	hold, err := locker.Acquire(ctx, lock.Request{Key: "order:42", Wait: 2 * time.Second})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = hold.Release(context.WithoutCancel(ctx)) }()

	_, err = locker.Acquire(ctx, lock.Request{Key: "order:42"})
	fmt.Println(err)
	// Output: lock: held by others (waited 0s): a call of this process; to re-enter, pass on its context
}

// A fencing token tells a late holder from the present one.
func ExampleLocker_Acquire_fenced() {
	ctx := context.Background()
	locker := memlock.New()
	for range 2 {
		hold, err := locker.Acquire(ctx, lock.Request{Key: "order:42", Kind: lock.Fenced})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println("token", hold.(interface{ Token() int64 }).Token())
		if err := hold.Release(ctx); err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// token 1
	// token 2
}

// A test breaks a lock to see that the work under it stops.
func ExampleLocker_ForceUnlock() {
	ctx := context.Background()
	locker := memlock.New()
	hold, err := locker.Acquire(ctx, lock.Request{Key: "order:42"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("broken:", locker.ForceUnlock("order:42"))
	<-hold.Context().Done()
	_, err = locker.Acquire(ctx, lock.Request{Key: "order:42"})
	fmt.Println("free:", err == nil)
	// Output:
	// broken: true
	// free: true
}
