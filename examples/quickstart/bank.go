package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"
)

// The bank's accounts and orders. Each account starts with opening cents.
var (
	accountIDs = []string{"alice", "bob", "carol", "dave", "erin", "frank", "grace", "heidi"}
	orderIDs   = []string{"1", "2", "3", "4", "5", "6", "7", "8"}
)

const (
	opening      = 1_000_00
	statementFee = 1
	maxCents     = 1_000_000_00
)

// Why the bank refuses to do something.
var (
	errUnknown = errors.New("no such account or order")
	errAmount  = fmt.Errorf("the amount must be from 1 to %d cents", maxCents)
	errSame    = errors.New("the accounts must differ")
	errFunds   = errors.New("not enough money in the account")
)

// Record is a row of the bank's only table: an account, or what was paid for an order.
type Record struct {
	Cents   int64 `json:"cents"`
	Updates int64 `json:"updates"` // how many it has seen
}

// Bank does what many services do with their databases: it reads records, computes, and writes them back. Each access
// is safe by itself, but of two updates at the same time the later overwrites the earlier. Its methods need a lock
// around them; see guards.go.
type Bank struct {
	latency time.Duration // of the database, between reading and writing

	mu      sync.Mutex
	records map[string]Record
}

func newBank(latency time.Duration) *Bank {
	b := &Bank{latency: latency, records: map[string]Record{}}
	for _, id := range accountIDs {
		b.records["account:"+id] = Record{Cents: opening}
	}
	for _, id := range orderIDs {
		b.records["order:"+id] = Record{}
	}
	return b
}

// Receipt is both accounts after a transfer.
type Receipt struct {
	From Record `json:"from"`
	To   Record `json:"to"`
}

// Transfer moves money between two accounts.
func (b *Bank) Transfer(ctx context.Context, req TransferRequest) (Receipt, error) {
	if req.From == req.To {
		return Receipt{}, errSame
	}
	if err := checkAmount(req.Cents); err != nil {
		return Receipt{}, err
	}
	records, err := b.update(ctx, func(r []Record) error {
		r[0].Cents -= req.Cents
		r[1].Cents += req.Cents
		return checkFunds(r[0])
	}, "account:"+req.From, "account:"+req.To)
	if err != nil {
		return Receipt{}, err
	}
	return Receipt{From: records[0], To: records[1]}, nil
}

// Deposit puts money into an account.
func (b *Bank) Deposit(ctx context.Context, account string, cents int64) (Record, error) {
	return b.add(ctx, "account:"+account, cents)
}

// Statement tells what is in an account, and charges for it.
func (b *Bank) Statement(ctx context.Context, req StatementRequest) (Record, error) {
	return b.updateOne(ctx, "account:"+req.Account, func(r *Record) error {
		r.Cents -= statementFee
		return checkFunds(*r)
	})
}

// Pay pays a part of an order.
func (b *Bank) Pay(ctx context.Context, req PayRequest) (Record, error) {
	return b.add(ctx, "order:"+req.Order, req.Cents)
}

func (b *Bank) add(ctx context.Context, name string, cents int64) (Record, error) {
	if err := checkAmount(cents); err != nil {
		return Record{}, err
	}
	return b.updateOne(ctx, name, func(r *Record) error {
		r.Cents += cents
		return nil
	})
}

func checkAmount(cents int64) error {
	if cents < 1 || cents > maxCents {
		return errAmount
	}
	return nil
}

func checkFunds(r Record) error {
	if r.Cents < 0 {
		return errFunds
	}
	return nil
}

// updateOne is update for one record.
func (b *Bank) updateOne(ctx context.Context, name string, change func(*Record) error) (Record, error) {
	records, err := b.update(ctx, func(r []Record) error { return change(&r[0]) }, name)
	if err != nil {
		return Record{}, err
	}
	return records[0], nil
}

// update changes the named records, all or none, and returns what it wrote. It gives up when ctx ends: then somebody
// else may have the lock.
func (b *Bank) update(ctx context.Context, change func([]Record) error, names ...string) ([]Record, error) {
	records, err := b.read(names)
	if err != nil {
		return nil, err
	}
	select {
	case <-time.After(b.latency):
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if err := change(records); err != nil {
		return nil, err
	}
	b.write(names, records)
	return records, nil
}

func (b *Bank) read(names []string) ([]Record, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var records []Record
	for _, name := range names {
		r, ok := b.records[name]
		if !ok {
			return nil, errUnknown
		}
		records = append(records, r)
	}
	return records, nil
}

func (b *Bank) write(names []string, records []Record) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, name := range names {
		records[i].Updates++
		b.records[name] = records[i]
	}
}

// snapshot returns all records.
func (b *Bank) snapshot() map[string]Record {
	b.mu.Lock()
	defer b.mu.Unlock()
	return maps.Clone(b.records)
}
