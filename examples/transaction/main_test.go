package main

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/redisson"
)

func TestNoPaymentIsLost(t *testing.T) {
	client, err := redisson.Open("redis://" + redistest.Any(t).Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	db, err := open(filepath.Join(t.TempDir(), "bank.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var out strings.Builder
	if err := run(t.Context(), client, db, &out); err != nil {
		t.Fatal(err)
	}
	if want := "200 payments of 1.00 from 1000.00 leave 800.00\n"; out.String() != want {
		t.Errorf("it printed %q, want %q", out.String(), want)
	}
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
