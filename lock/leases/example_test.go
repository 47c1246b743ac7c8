package leases_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/leases"
)

// table is the smallest Store: one row a key, with a time at which it ends.
type table struct {
	mu   sync.Mutex
	rows map[string]row
}

type row struct {
	owner string
	until time.Time
}

func (t *table) Take(_ context.Context, e *leases.Entry, d time.Duration) (leases.Grant, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if r := t.rows[e.Key]; r.owner != e.ID && time.Now().Before(r.until) {
		return leases.Grant{}, &lock.BusyError{Remaining: time.Until(r.until)}
	}
	t.rows[e.Key] = row{e.ID, time.Now().Add(d)}
	return leases.Grant{}, nil
}

func (t *table) Extend(_ context.Context, e *leases.Entry, d time.Duration) (time.Duration, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.rows[e.Key]
	if r.owner != e.ID || !time.Now().Before(r.until) {
		return 0, lock.ErrNotHeld
	}
	if until := time.Now().Add(d); until.After(r.until) {
		t.rows[e.Key] = row{e.ID, until}
	}
	return 0, nil
}

func (t *table) Free(_ context.Context, e *leases.Entry, keep time.Duration) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if r := t.rows[e.Key]; r.owner != e.ID || !time.Now().Before(r.until) {
		return lock.ErrNotHeld
	}
	t.rows[e.Key] = row{e.ID, time.Now().Add(keep)}
	return nil
}

// Three methods make a Locker that renews, re-enters and notices losses.
func Example() {
	locker, err := leases.New(&table{rows: make(map[string]row)})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	hold, err := locker.Acquire(ctx, lock.Request{Key: "order:42"})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = locker.Acquire(ctx, lock.Request{Key: "order:42"})
	fmt.Println("a stranger is busy:", errors.Is(err, lock.ErrBusy))
	nested, err := locker.Acquire(hold.Context(), lock.Request{Key: "order:42"})
	fmt.Println("a call under the hold re-enters:", err == nil)
	fmt.Println(nested.Release(ctx), hold.Release(ctx))
	// Output:
	// a stranger is busy: true
	// a call under the hold re-enters: true
	// <nil> <nil>
}
