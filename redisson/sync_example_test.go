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

func ExampleSemaphore() {
	client, stop := example()
	defer stop()
	ctx := context.Background()

	s := client.Semaphore("printers")
	fmt.Println(s.TrySetPermits(ctx, 2)) // the first to come says how many there are
	if err := s.Acquire(ctx, 2); err != nil {
		log.Fatal(err)
	}
	fmt.Println(s.TryAcquire(ctx, 1, 10*time.Millisecond))
	fmt.Println(s.Release(ctx, 2))
	fmt.Println(s.AvailablePermits(ctx))
	// Output:
	// true <nil>
	// false <nil>
	// <nil>
	// 2 <nil>
}

func ExamplePermitExpirableSemaphore() {
	client, stop := example()
	defer stop()
	ctx := context.Background()

	s := client.PermitExpirableSemaphore("licences")
	fmt.Println(s.TrySetPermits(ctx, 1))
	id, err := s.Acquire(ctx, time.Minute) // free again in a minute, whatever happens to this process
	if err != nil {
		log.Fatal(err)
	}
	_, ok, err := s.TryAcquire(ctx, 0, time.Minute)
	fmt.Println(ok, err)
	fmt.Println(s.UpdateLease(ctx, id, 5*time.Minute))
	fmt.Println(s.Release(ctx, id))
	fmt.Println(errors.Is(s.Release(ctx, id), lock.ErrNotHeld))
	// Output:
	// true <nil>
	// false <nil>
	// <nil>
	// <nil>
	// true
}

func ExamplePermitExpirableSemaphore_AcquireN() {
	client, stop := example()
	defer stop()
	ctx := context.Background()

	s := client.PermitExpirableSemaphore("cores")
	fmt.Println(s.TrySetPermits(ctx, 8))
	ids, err := s.AcquireN(ctx, 6, time.Minute) // six at once, or none
	if err != nil {
		log.Fatal(err)
	}
	_, ok, err := s.TryAcquireN(ctx, 3, 0, time.Minute)
	fmt.Println(ok, err)
	fmt.Println(s.Release(ctx, ids...))
	fmt.Println(s.AvailablePermits(ctx))
	// Output:
	// true <nil>
	// false <nil>
	// <nil>
	// 8 <nil>
}

func ExampleCountDownLatch() {
	client, stop := example()
	defer stop()
	ctx := context.Background()

	l := client.CountDownLatch("import:42")
	fmt.Println(l.TrySetCount(ctx, 2))
	for range 2 { // elsewhere, when a part is done
		go func() {
			if err := l.CountDown(ctx); err != nil {
				log.Print(err)
			}
		}()
	}
	fmt.Println(l.Await(ctx))
	// Output:
	// true <nil>
	// <nil>
}

func ExampleRateLimiter() {
	client, stop := example()
	defer stop()
	ctx := context.Background()

	l := client.RateLimiter("mails")
	fmt.Println(l.TrySetRate(ctx, redisson.Rate{Permits: 3, Interval: time.Minute}))
	fmt.Println(l.TryAcquire(ctx, 3, 0))
	fmt.Println(l.TryAcquire(ctx, 1, time.Second)) // would have to wait for a minute
	fmt.Println(l.AvailablePermits(ctx))
	// Output:
	// true <nil>
	// true <nil>
	// false <nil>
	// 0 <nil>
}

func ExampleRateLimiter_Release() {
	client, stop := example()
	defer stop()
	ctx := context.Background()

	l := client.RateLimiter("mails")
	fmt.Println(l.TrySetRate(ctx, redisson.Rate{Permits: 3, Interval: time.Minute}))
	fmt.Println(l.TryAcquire(ctx, 3, 0))
	fmt.Println(l.Release(ctx, 2)) // two of them had no address
	fmt.Println(l.TryAcquire(ctx, 2, 0))
	// Output:
	// true <nil>
	// true <nil>
	// <nil>
	// true <nil>
}

func ExampleRateLimiter_UpdateRate() {
	client, stop := example()
	defer stop()
	ctx := context.Background()

	l := client.RateLimiter("mails")
	fmt.Println(l.TrySetRate(ctx, redisson.Rate{Permits: 3, Interval: time.Minute}))
	fmt.Println(l.TryAcquire(ctx, 3, 0))
	fmt.Println(l.UpdateRate(ctx, redisson.Rate{Permits: 5, Interval: time.Minute}, true)) // three of them are taken
	fmt.Println(l.AvailablePermits(ctx))
	fmt.Println(l.Rate(ctx))
	// Output:
	// true <nil>
	// true <nil>
	// <nil>
	// 2 <nil>
	// {5 1m0s false 0s} <nil>
}

func ExampleFencingTokenTTL() {
	client, stop := example(redisson.FencingTokenTTL(30 * 24 * time.Hour)) // longer than any resource remembers a token
	defer stop()

	l := client.FencedLock("order:7")
	held, err := l.Lock(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(l.Token(held))
	fmt.Println(l.Unlock(held))
	// Output:
	// 1 true
	// <nil>
}
