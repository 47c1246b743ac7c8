package memlock

import (
	"errors"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/lock"
)

// TestPeek compares Peek with the Acquire that it foretells.
func TestPeek(t *testing.T) {
	for _, tt := range []struct {
		name string
		held *lock.Request // by somebody else
		want lock.Request
		err  error
	}{
		{"free", nil, lock.Request{Key: "a"}, nil},
		{"held", &lock.Request{Key: "a"}, lock.Request{Key: "a"}, lock.ErrBusy},
		{"held with a lease", &lock.Request{Key: "a", Lease: time.Hour}, lock.Request{Key: "a"}, lock.ErrBusy},
		{"another key", &lock.Request{Key: "b"}, lock.Request{Key: "a"}, nil},
		{"shared", &lock.Request{Key: "a", Kind: lock.Read}, lock.Request{Key: "a", Kind: lock.Read}, nil},
		{"a permit is left", &lock.Request{Key: "a", Kind: lock.Permit, Limit: 2}, lock.Request{Key: "a", Kind: lock.Permit, Limit: 2}, nil},
		{"no permit is left", &lock.Request{Key: "a", Kind: lock.Permit, Limit: 1}, lock.Request{Key: "a", Kind: lock.Permit, Limit: 1}, lock.ErrBusy},
		{"another family", &lock.Request{Key: "a", Kind: lock.Read}, lock.Request{Key: "a"}, lock.ErrUnsupported},
	} {
		l := New()
		if tt.held != nil {
			if _, err := l.Acquire(t.Context(), *tt.held); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 { // the first must leave nothing behind
			err := l.Peek(t.Context(), tt.want)
			if !errors.Is(err, tt.err) || (err == nil) != (tt.err == nil) {
				t.Errorf("%s: Peek = %v, want %v", tt.name, err, tt.err)
			}
			if busy, ok := errors.AsType[*lock.BusyError](err); ok && (busy.Remaining > 0) != (tt.held.Lease > 0) {
				t.Errorf("%s: remaining %v", tt.name, busy.Remaining)
			}
		}
		if _, err := l.Acquire(t.Context(), tt.want); !errors.Is(err, tt.err) || (err == nil) != (tt.err == nil) {
			t.Errorf("%s: Acquire = %v, want %v", tt.name, err, tt.err)
		}
	}
	l := New()
	if err := l.Peek(t.Context(), lock.Request{}); err == nil {
		t.Error("Peek without a key succeeded")
	}
	h, err := l.Acquire(t.Context(), lock.Request{Key: "a"})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Peek(h.Context(), lock.Request{Key: "a"}); err != nil {
		t.Errorf("Peek of a re-entry = %v", err)
	}
}
