package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/latchkey-go/latchkey/cmd/latchkey-gen/internal/shop"
	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/lock/memlock"
)

// Settle is declared with //latchkey:guard order:#{id}:#{call}; hold=1m above it, and GuardSettle is generated.
func Example() {
	settle, err := shop.GuardSettle(memlock.New())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(settle(context.Background(), "7", "first", 40, 2))
	_, err = settle(context.Background(), "7", "first", 40, 2)
	fmt.Println(errors.Is(err, guard.ErrBusy)) // as the lock stays for a minute
	// Output:
	// 42 <nil>
	// true
}
