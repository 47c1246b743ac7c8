package lock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
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

// Code under a lock may take it again, because its context says who called it. Work that must exclude the call that started
// it begins without ancestors.
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
	fmt.Println("the same call:", try(hold.Context()))
	fmt.Println("a new owner:", try(lock.NewOwner(hold.Context())))
	fmt.Println("released:", hold.Release(context.Background()))
	// Output:
	// the same call: <nil>
	// a new owner: lock: held by others (waited 0s): a call of this process; to re-enter, pass on its context
	// released: <nil>
}

// Two calls under one hold are strangers to each other. A call that has dropped the context of its own hold is taken for
// such a sibling, and the error says so.
func ExampleBusyError() {
	var locker lock.Locker = memlock.New()
	order, err := locker.Acquire(context.Background(), lock.Request{Key: "order:42"})
	if err != nil {
		fmt.Println(err)
		return
	}
	stock, err := locker.Acquire(order.Context(), lock.Request{Key: "stock:sku1"})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = locker.Acquire(order.Context(), lock.Request{Key: "stock:sku1"}) // and not stock.Context()
	if busy, ok := errors.AsType[*lock.BusyError](err); ok {
		fmt.Println("related:", busy.Related)
		fmt.Println(busy)
	}
	fmt.Println("released:", stock.Release(context.Background()), order.Release(context.Background()))
	// Output:
	// related: true
	// lock: held by others (waited 0s): another call under the same outer hold; to re-enter, pass on its context
	// released: <nil> <nil>
}

// The holds above a context are those that a call with it may re-enter.
func ExampleAncestors() {
	var locker lock.Locker = memlock.New()
	above := func(ctx context.Context) int { return len(slices.Collect(lock.Ancestors(ctx))) }
	outer, err := locker.Acquire(context.Background(), lock.Request{Key: "order:42"})
	if err != nil {
		fmt.Println(err)
		return
	}
	inner, err := locker.Acquire(outer.Context(), lock.Request{Key: "stock:sku1"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("under both:", above(inner.Context()))
	fmt.Println("a new owner:", above(lock.NewOwner(inner.Context())))
	if err := outer.Release(context.Background()); err != nil {
		fmt.Println(err)
	}
	fmt.Println("after the release of one:", above(inner.Context()))
	fmt.Println("released:", inner.Release(context.Background()))
	// Output:
	// under both: 2
	// a new owner: 0
	// after the release of one: 1
	// released: <nil>
}

// Waiting does not help a reader who wants to write, or somebody who wants a key as another kind of lock.
func ExampleKindError() {
	var locker lock.Locker = memlock.New()
	read, err := locker.Acquire(context.Background(), lock.Request{Key: "order:42", Kind: lock.Read})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = locker.Acquire(read.Context(), lock.Request{Key: "order:42", Kind: lock.Write, Wait: -1})
	fmt.Println(errors.Is(err, lock.ErrUnsupported), err)
	_, err = locker.Acquire(context.Background(), lock.Request{Key: "order:42", Wait: -1})
	fmt.Println(errors.Is(err, lock.ErrUnsupported), err)
	fmt.Println("released:", read.Release(context.Background()))
	// Output:
	// true lock: wanted as write, but this call holds it as read and would wait for itself: release the read lock first, or take the write lock from the start
	// true lock: wanted as exclusive, but held as read: use kinds of one family for a key
	// released: <nil>
}

// The optional methods of a hold are found by a type assertion.
func ExampleHold_extend() {
	var locker lock.Locker = memlock.New()
	hold, err := locker.Acquire(context.Background(), lock.Request{Key: "order:42", Lease: 10 * time.Second})
	if err != nil {
		fmt.Println(err)
		return
	}
	if e, ok := hold.(interface {
		Extend(ctx context.Context, d time.Duration) error
	}); ok {
		fmt.Println("extended:", e.Extend(context.Background(), time.Minute))
	}
	_, err = locker.Acquire(context.Background(), lock.Request{Key: "order:42"})
	if busy, ok := errors.AsType[*lock.BusyError](err); ok {
		fmt.Println("busy, free in", busy.Remaining.Round(time.Minute))
	}
	fmt.Println("released:", hold.Release(context.Background()))
	// Output:
	// extended: <nil>
	// busy, free in 1m0s
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
