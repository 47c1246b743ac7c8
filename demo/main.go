// Demo sends 400 calls at once to a small bank, first without locks and then with them, and prints what became of them.
//
//	go run ./demo
//
// It brings a Redis within its process; LATCHKEY_REDIS_URL names another. The declarations of the locks are in bank.go.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/redisson"
)

const (
	callers = 400              // in each run, all at once
	latency = time.Millisecond // of the bank's database
	timeout = time.Minute      // of the program
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	if err := run(ctx, os.Getenv("LATCHKEY_REDIS_URL"), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

// run takes locks in the Redis at url, or without one in a Redis of its own.
func run(ctx context.Context, url string, out io.Writer) error {
	if url == "" {
		embedded, err := miniredis.Run()
		if err != nil {
			return fmt.Errorf("embedded Redis: %w", err)
		}
		defer embedded.Close()
		url = "redis://" + embedded.Addr()
	}
	client, err := redisson.Open(url, redisson.Name("demo"))
	if err != nil {
		return err
	}
	defer client.Close()
	if err := client.Ping(ctx); err != nil {
		return fmt.Errorf("the demo needs the Redis that LATCHKEY_REDIS_URL names: %w", err)
	}

	bank := newBank(latency)
	unguarded, guarded := bank.service(), bank.service()
	if err := guard.Bind(guard.Must(guard.New(client)), &guarded); err != nil {
		return err
	}
	result := comparison{
		unguarded: measure(ctx, bank, calls(unguarded)),
		guarded:   measure(ctx, bank, calls(guarded)),
	}
	if err := result.print(out); err != nil {
		return err
	}
	return result.check()
}

// call is something that a caller can do any number of times, to another account or order each time.
type call struct {
	updates int // that it makes if it succeeds
	send    func(ctx context.Context, n int) error
}

func calls(s Service) []call {
	return []call{
		{2, func(ctx context.Context, n int) error {
			return s.Transfer(ctx, Transfer{From: pick(accounts, n), To: pick(accounts, n+1), Cents: 1})
		}},
		{1, func(ctx context.Context, n int) error {
			return s.Deposit(ctx, Deposit{Account: pick(accounts, n), Cents: 1})
		}},
		{1, func(ctx context.Context, n int) error {
			return s.Pay(ctx, Payment{Order: pick(orders, n), Cents: 1})
		}},
	}
}

func pick(ids []string, n int) string { return ids[n%len(ids)] }

// tally is what became of one run.
type tally struct {
	calls, succeeded, busy int
	failed                 error // the first call that neither succeeded nor found a lock busy
	lost                   int   // updates that callers were told of, and that are not there
	p50, p99               time.Duration
}

// measure makes all calls at once. Each update adds one to what its record counts, so that one that overwrites another
// shows as a missing one.
func measure(ctx context.Context, bank *Bank, calls []call) tally {
	before := bank.updates()
	errs := make([]error, callers)
	took := make([]time.Duration, callers)
	start := make(chan struct{})
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() {
			<-start
			began := time.Now()
			errs[i] = calls[i%len(calls)].send(ctx, i/len(calls))
			took[i] = time.Since(began)
		})
	}
	close(start)
	all.Wait()

	t := tally{calls: callers, lost: before - bank.updates()}
	for i, err := range errs {
		switch {
		case err == nil:
			t.succeeded++
			t.lost += calls[i%len(calls)].updates
		case errors.Is(err, guard.ErrBusy):
			t.busy++
		case t.failed == nil:
			t.failed = err
		}
	}
	slices.Sort(took)
	t.p50, t.p99 = took[callers*50/100], took[callers*99/100]
	return t
}

// comparison is the result of the demo.
type comparison struct{ unguarded, guarded tally }

// print writes the table, and the line of JSON behind it.
func (c comparison) print(w io.Writer) error {
	fmt.Fprintf(w, "%9s  %8s  %9s  %4s  %12s  %9s  %9s\n", "", "requests", "succeeded", "busy", "lost updates", "p50", "p99")
	c.unguarded.row(w, "unguarded")
	c.guarded.row(w, "guarded")
	return json.NewEncoder(w).Encode(struct {
		Requests      int     `json:"requests"`
		UnguardedLost int     `json:"unguarded_lost_updates"`
		GuardedLost   int     `json:"guarded_lost_updates"`
		GuardedBusy   int     `json:"guarded_busy"`
		P50           float64 `json:"p50_ms"`
		P99           float64 `json:"p99_ms"`
	}{c.guarded.calls, c.unguarded.lost, c.guarded.lost, c.guarded.busy, ms(c.guarded.p50), ms(c.guarded.p99)})
}

func (t tally) row(w io.Writer, name string) {
	fmt.Fprintf(w, "%9s  %8d  %9d  %4d  %12d  %6.1f ms  %6.1f ms\n", name, t.calls, t.succeeded, t.busy, t.lost, ms(t.p50), ms(t.p99))
}

// ms is d in milliseconds, to the tenth.
func ms(d time.Duration) float64 {
	return float64(d.Round(100*time.Microsecond)) / float64(time.Millisecond)
}

// check says why the demo does not show what it is there to show.
func (c comparison) check() error {
	switch {
	case c.unguarded.failed != nil:
		return fmt.Errorf("unguarded: %w", c.unguarded.failed)
	case c.guarded.failed != nil:
		return fmt.Errorf("guarded: %w", c.guarded.failed)
	case c.guarded.lost != 0:
		return fmt.Errorf("%d guarded updates were lost", c.guarded.lost)
	case c.unguarded.lost == 0:
		return errors.New("no unguarded update was lost, so this shows nothing: try again")
	}
	return nil
}
