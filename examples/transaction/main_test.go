package main

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"testing"

	"github.com/latchkey-go/latchkey/examples/internal/exampletest"
	"github.com/latchkey-go/latchkey/lock"
)

func TestNoPaymentIsLost(t *testing.T) {
	db, err := open(filepath.Join(t.TempDir(), "bank.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	exampletest.Prints(t, func(ctx context.Context, locker lock.Locker, out io.Writer) error {
		return run(ctx, locker, db, out)
	}, "200 payments of 1.00 from 1000.00 leave 800.00\n")
}

// A holder that slept past its lease comes back with an old token, after another one has written.
func TestAnOldTokenWritesNothing(t *testing.T) {
	db, err := open(filepath.Join(t.TempDir(), "bank.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := write(t.Context(), db, "alice", 500, 8); err != nil {
		t.Fatalf("the holder with token 8: %v", err)
	}
	if err := write(t.Context(), db, "alice", 99900, 7); !errors.Is(err, errStale) {
		t.Errorf("the holder with token 7: %v, want errStale", err)
	}
	if cents, err := read(t.Context(), db, "alice"); cents != 500 || err != nil {
		t.Errorf("the account holds %d (%v), want 500", cents, err)
	}
}
