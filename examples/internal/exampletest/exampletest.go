// Package exampletest runs the examples in tests, with locks of a real Redis.
package exampletest

import (
	"context"
	"io"
	"strings"
	"testing"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson"
)

// Clients returns n clients of one Redis, as n instances of a service have them. They are closed when the test ends.
func Clients(tb testing.TB, n int) (clients []*redisson.Client) {
	tb.Helper()
	addr := redistest.Any(tb).Addr
	for range n {
		c, err := redisson.Open("redis://" + addr)
		if err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(func() { _ = c.Close() })
		clients = append(clients, c)
	}
	return clients
}

// Prints runs an example and expects that it prints all of want.
func Prints(tb testing.TB, run func(context.Context, lock.Locker, io.Writer) error, want ...string) {
	tb.Helper()
	var out strings.Builder
	if err := run(tb.Context(), Clients(tb, 1)[0], &out); err != nil {
		tb.Fatal(err)
	}
	for _, w := range want {
		if !strings.Contains(out.String(), w) {
			tb.Errorf("it printed\n%swithout %q", out.String(), w)
		}
	}
}
