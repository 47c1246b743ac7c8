package zklock_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/zklock"
)

// servers are those that the examples use.
func servers() []string {
	s, err := shared()
	if err != nil {
		log.Fatal(err)
	}
	return []string{s.Addr}
}

func Example() {
	session, err := zklock.Connect(servers())
	if err != nil {
		log.Fatal(err)
	}
	defer session.Close()
	locker, err := zklock.New(session)
	if err != nil {
		log.Fatal(err)
	}

	ctx := context.Background()
	hold, err := locker.Acquire(ctx, lock.Request{Key: "order:42", Wait: 2 * time.Second})
	if err != nil {
		log.Fatal(err)
	}
	_, err = locker.Acquire(ctx, lock.Request{Key: "order:42"})
	fmt.Println("another call is refused:", errors.Is(err, lock.ErrBusy))
	_, err = locker.Acquire(hold.Context(), lock.Request{Key: "order:42"})
	fmt.Println("the call itself comes in again:", err == nil)
	fmt.Println(hold.Release(ctx))
	// Output:
	// another call is refused: true
	// the call itself comes in again: true
	// <nil>
}

// A session with a short timeout frees the locks of a crashed process soon, and has them lost soon when ZooKeeper can't be reached.
func ExampleConnect() {
	session, err := zklock.Connect(servers(), zklock.SessionTimeout(10*time.Second), zklock.Auth("digest", []byte("orders:secret")))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(session.Close())
	// Output: <nil>
}

// The fencing token of a lock grows with each stay, also with those of Curator's users.
func ExampleNew() {
	session, err := zklock.Connect(servers())
	if err != nil {
		log.Fatal(err)
	}
	defer session.Close()
	locker, err := zklock.New(session, zklock.Root("/shop/locks"))
	if err != nil {
		log.Fatal(err)
	}
	var tokens []int64
	for range 2 {
		hold, err := locker.Acquire(context.Background(), lock.Request{Key: "stock", Kind: lock.Fenced, Wait: time.Second})
		if err != nil {
			log.Fatal(err)
		}
		tokens = append(tokens, hold.(interface{ Token() int64 }).Token())
		if err := hold.Release(context.Background()); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	fmt.Println(tokens[0] < tokens[1])
	// Output: true
}
