package guardtest_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/guard/guardtest"
	"github.com/latchkey-go/latchkey/lock"
)

// Payment is the request of the code under test.
type Payment struct{ OrderID string }

// newPay is the code under test: a function behind its guard, over the locker that it is given.
func newPay(l lock.Locker, opts ...guard.Option) func(context.Context, Payment) (string, error) {
	opts = append(opts, guard.Name("order.pay"), guard.Key("order:#{req.OrderID}"), guard.Wait(time.Second))
	return guard.Must(guard.Func(guard.Must(guard.New(l, opts...)), pay))
}

// pay takes five seconds, and heeds its context.
func pay(ctx context.Context, p Payment) (string, error) {
	select {
	case <-time.After(5 * time.Second):
		return "paid " + p.OrderID, nil
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

func TestPayTakesTheLockOfItsOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := guardtest.New()
		if _, err := newPay(l)(t.Context(), Payment{OrderID: "7"}); err != nil {
			t.Fatal(err)
		}
		l.WantKeys(t, "order:7")
		l.WantNothingHeld(t)
	})
}

func TestPayGivesUpAfterASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := guardtest.New(guardtest.BusyFor(2 * time.Second))
		start := time.Now()
		_, err := newPay(l)(t.Context(), Payment{OrderID: "7"})
		if !errors.Is(err, guard.ErrBusy) || time.Since(start) != time.Second {
			t.Errorf("pay = %v after %v, want ErrBusy after 1s", err, time.Since(start))
		}
	})
}

func TestPayStopsWhenItsLockIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var events guardtest.Events
		l := guardtest.New(guardtest.LostAfter(time.Second))
		_, err := newPay(l, guard.Observe(events.Observe))(t.Context(), Payment{OrderID: "7"})
		if !errors.Is(err, guard.ErrLost) {
			t.Errorf("pay = %v, want ErrLost", err)
		}
		if held := events.Only(t).Held; held != time.Second {
			t.Errorf("pay went on for %v, want 1s", held)
		}
	})
}

func TestPaySurvivesAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := guardtest.New(guardtest.OutageFor(time.Minute, errors.New("connection refused")))
		pay := newPay(l)
		if _, err := pay(t.Context(), Payment{OrderID: "7"}); !errors.Is(err, guard.ErrOutage) {
			t.Errorf("pay = %v, want ErrOutage", err)
		}
		time.Sleep(time.Minute)
		if _, err := pay(t.Context(), Payment{OrderID: "7"}); err != nil {
			t.Errorf("pay after the outage = %v", err)
		}
	})
}

func TestPayOnceAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var events guardtest.Events
		l := guardtest.New()
		pay := newPay(l, guard.Observe(events.Observe))
		var callers sync.WaitGroup
		callers.Go(func() { _, _ = pay(t.Context(), Payment{OrderID: "7"}) })
		synctest.Wait() // it holds the lock
		l.WantHeld(t, "order:7")
		_, _ = pay(t.Context(), Payment{OrderID: "7"})
		callers.Wait()
		events.WantOutcomes(t, "order.pay", guard.OutcomeBusy, guard.OutcomeOK)
	})
}

func TestGuardsHaveOneOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var events guardtest.Events
		pay := newPay(guardtest.New(), guard.Observe(events.Observe))
		_, _ = pay(t.Context(), Payment{OrderID: "7"})
		// … all that the program does with nested guards …
		events.WantOneOrder(t)
	})
}

// TestPage holds that the code in docs/testing.md is this file's.
func TestPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/testing.md")
	if err != nil {
		t.Fatal(err)
	}
	here, err := os.ReadFile("recipes_test.go")
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(page), "```")
	for i := 1; i < len(blocks); i += 2 {
		code, ok := strings.CutPrefix(blocks[i], "go\n")
		if !ok || !strings.Contains(string(here), strings.TrimRight(code, "\n")) {
			t.Errorf("docs/testing.md has code that is not in recipes_test.go:\n%s", blocks[i])
		}
	}
	if len(blocks) < 7 {
		t.Errorf("docs/testing.md has %d blocks of code", len(blocks)/2)
	}
}
