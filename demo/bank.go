package main

import (
	"context"
	"sync"
	"time"
)

// Service is what the bank does. A tag declares the lock of each call: whatever touches an account takes the lock
// account:<id>, and a transfer takes those of both, or none. [guard.Bind] reads the tags and guards the functions in place.
type Service struct {
	Transfer func(context.Context, Transfer) error `guard:"account:#{[req.From, req.To]}; wait=2s"`
	Deposit  func(context.Context, Deposit) error  `guard:"account:#{req.Account}; wait=2s"`
	Pay      func(context.Context, Payment) error  `guard:"order:#{req.Order}; wait=2s"`
}

// Transfer moves money from one account to another.
type Transfer struct {
	From, To string
	Cents    int
}

// Deposit puts money into an account.
type Deposit struct {
	Account string
	Cents   int
}

// Payment pays a part of an order.
type Payment struct {
	Order string
	Cents int
}

var (
	accounts = []string{"alice", "bob", "carol", "dave", "erin", "frank", "grace", "heidi"}
	orders   = []string{"1", "2", "3", "4", "5", "6", "7", "8"}
)

// Bank does what many services do with their databases: it reads records, computes, and writes them back. Each access
// is safe by itself, but of two updates at the same time the later one overwrites the earlier.
type Bank struct {
	latency time.Duration // between reading and writing

	mu      sync.Mutex
	records map[string]record
}

// record is an account, or what was paid for an order.
type record struct{ cents, updates int }

func newBank(latency time.Duration) *Bank {
	return &Bank{latency: latency, records: map[string]record{}}
}

// service is the bank without locks.
func (b *Bank) service() Service {
	return Service{
		Transfer: func(ctx context.Context, t Transfer) error {
			return b.update(ctx, map[string]int{"account:" + t.From: -t.Cents, "account:" + t.To: t.Cents})
		},
		Deposit: func(ctx context.Context, d Deposit) error {
			return b.update(ctx, map[string]int{"account:" + d.Account: d.Cents})
		},
		Pay: func(ctx context.Context, p Payment) error {
			return b.update(ctx, map[string]int{"order:" + p.Order: p.Cents})
		},
	}
}

// update adds cents to each record that change names. It gives up when ctx ends, as somebody else may have the lock then.
func (b *Bank) update(ctx context.Context, change map[string]int) error {
	was := map[string]record{}
	b.mu.Lock()
	for name := range change {
		was[name] = b.records[name]
	}
	b.mu.Unlock()
	select {
	case <-time.After(b.latency):
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for name, cents := range change {
		b.records[name] = record{was[name].cents + cents, was[name].updates + 1}
	}
	return nil
}

// updates is how many updates of all records are there.
func (b *Bank) updates() (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range b.records {
		n += r.updates
	}
	return n
}
