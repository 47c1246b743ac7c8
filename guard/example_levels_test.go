package guard_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/lock/memlock"
)

// One report a user is made at a time, and two in all. The work under a report asks for the next, as another request would.
func ExampleLevel() {
	type Request struct {
		User string
		Next []string
	}
	g := guard.Must(guard.New(memlock.New(),
		guard.Name("report"),
		guard.Key("user:#{req.User}"),
		guard.Limit(1),
		guard.Level(2, "all"),
	))
	var report func(context.Context, Request) error
	report = guard.Must(guard.Action(g, func(_ context.Context, r Request) error {
		fmt.Println(r.User, "has a report")
		if len(r.Next) == 0 {
			return nil
		}
		return report(context.Background(), Request{User: r.Next[0], Next: r.Next[1:]})
	}))

	for _, users := range [][]string{{"alice", "bob"}, {"alice", "alice"}, {"alice", "bob", "carol"}} {
		err := report(context.Background(), Request{User: users[0], Next: users[1:]})
		if e, ok := errors.AsType[*guard.Error](err); ok {
			fmt.Println("full:", e.Level)
		}
	}
	// Output:
	// alice has a report
	// bob has a report
	// alice has a report
	// full: user:#{req.User}
	// alice has a report
	// bob has a report
	// full: all
}

// Two calls of a partner's interface begin within a minute, however short they are.
func ExampleRate() {
	g := guard.Must(guard.New(memlock.New(),
		guard.Name("partner.call"),
		guard.Key("partner:#{req}"),
		guard.Rate(2, time.Minute),
	))
	call := guard.Must(guard.Action(g, func(_ context.Context, partner string) error {
		fmt.Println("call of", partner)
		return nil
	}))
	for range 3 {
		err := call(context.Background(), "acme")
		if e, ok := errors.AsType[*guard.Error](err); ok && e.Rate {
			fmt.Println("used up, again after about", e.RetryAfter.Round(time.Minute))
		}
	}
	// Output:
	// call of acme
	// call of acme
	// used up, again after about 1m0s
}
