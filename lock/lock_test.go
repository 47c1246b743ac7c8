package lock_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/lock"
)

func TestRequestValidate(t *testing.T) {
	for _, tt := range []struct {
		r    lock.Request
		want string
	}{
		{lock.Request{Key: "k"}, ""},
		{lock.Request{Key: "k", Wait: -1, Lease: time.Millisecond, MaxHold: time.Second}, ""},
		{lock.Request{Key: "k", Kind: lock.Permit, Limit: 1}, ""},
		{lock.Request{Key: "k", Kind: lock.Fair, Limit: -1}, ""},
		{lock.Request{}, "lock: request without a key"},
		{lock.Request{Key: "k", Kind: -1}, "lock: unknown kind -1"},
		{lock.Request{Key: "k", Kind: lock.Permit + 1}, "lock: unknown kind 7"},
		{lock.Request{Key: "k", Lease: -time.Second}, "lock: negative lease -1s"},
		{lock.Request{Key: "k", Lease: time.Millisecond - 1}, "lock: lease 999.999µs is under a millisecond"},
		{lock.Request{Key: "k", MaxHold: -time.Second}, "lock: negative max hold -1s"},
		{lock.Request{Key: "k", Kind: lock.Permit}, "lock: a permit needs a limit of at least 1, not 0"},
		{lock.Request{Key: "k", Kind: lock.Permit, Limit: -3}, "lock: a permit needs a limit of at least 1, not -3"},
	} {
		got := ""
		if err := tt.r.Validate(); err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("%+v.Validate() = %q, want %q", tt.r, got, tt.want)
		}
	}
}

func TestKindText(t *testing.T) {
	names := []string{"exclusive", "fair", "read", "write", "fenced", "spin", "permit"}
	for k := lock.Exclusive; k <= lock.Permit; k++ {
		if k.String() != names[k] {
			t.Errorf("Kind(%d).String() = %q, want %q", int(k), k, names[k])
		}
		text, err := json.Marshal(k)
		if err != nil {
			t.Errorf("Marshal(%v) = %v", k, err)
		}
		back := lock.Kind(-1)
		if err := json.Unmarshal(text, &back); err != nil || back != k {
			t.Errorf("Unmarshal(%s) = %v, %v, want %v", text, back, err, k)
		}
	}
}

func TestKindWithoutText(t *testing.T) {
	for k, want := range map[lock.Kind]string{-1: "kind(-1)", lock.Permit + 1: "kind(7)"} {
		if k.String() != want {
			t.Errorf("String() = %q, want %q", k, want)
		}
		if text, err := k.MarshalText(); err == nil {
			t.Errorf("%v.MarshalText() = %q, want an error", k, text)
		}
	}
	for _, text := range []string{"", "Fair", "fair ", "kind(7)", "mutex"} {
		k := lock.Spin
		if err := k.UnmarshalText([]byte(text)); err == nil || k != lock.Spin {
			t.Errorf("UnmarshalText(%q) = %v, kind %v, want an error and the old kind", text, err, k)
		}
	}
}

func TestErrorsMatch(t *testing.T) {
	errNetwork := errors.New("network down")
	all := []error{lock.ErrBusy, lock.ErrLost, lock.ErrMaxHold, lock.ErrNotHeld, lock.ErrUnsupported, errNetwork}
	for _, tt := range []struct {
		err     error
		matches []error
		text    string
	}{
		{&lock.BusyError{}, []error{lock.ErrBusy}, "lock: held by others (waited 0s)"},
		{&lock.BusyError{Waited: 2 * time.Second, Remaining: time.Minute}, []error{lock.ErrBusy},
			"lock: held by others (waited 2s, remaining lease 1m0s)"},
		{&lock.LostError{Held: time.Second}, []error{lock.ErrLost}, "lock: lost after 1s"},
		{&lock.LostError{Held: time.Second, Reason: errNetwork}, []error{lock.ErrLost, errNetwork},
			"lock: lost after 1s: network down"},
		{&lock.LostError{Held: time.Second, Reason: lock.ErrMaxHold}, []error{lock.ErrLost, lock.ErrMaxHold},
			"lock: lost after 1s: lock: held for as long as allowed"},
	} {
		var got []error
		for _, err := range all {
			if errors.Is(tt.err, err) {
				got = append(got, err)
			}
		}
		if !slices.Equal(got, tt.matches) {
			t.Errorf("%v matches %v, want %v", tt.err, got, tt.matches)
		}
		if tt.err.Error() != tt.text {
			t.Errorf("Error() = %q, want %q", tt.err, tt.text)
		}
	}
}

func TestOwners(t *testing.T) {
	if o, ok := lock.OwnerFrom(t.Context()); ok || o != 0 {
		t.Errorf("OwnerFrom(no owner) = %v, %v", o, ok)
	}
	parent := lock.NewOwner(t.Context())
	child, cancel := context.WithCancel(parent)
	defer cancel()
	first, ok := lock.OwnerFrom(parent)
	if !ok || first == 0 {
		t.Errorf("OwnerFrom(owner) = %v, %v", first, ok)
	}
	if o, _ := lock.OwnerFrom(child); o != first {
		t.Errorf("owner of a derived context = %v, want %v", o, first)
	}
	if o, _ := lock.OwnerFrom(lock.NewOwner(child)); o == first {
		t.Errorf("NewOwner under an owner = %v, want a fresh one", o)
	}
}

func TestOwnersAreDistinct(t *testing.T) {
	const n = 1000
	var seen sync.Map
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range n {
				o, _ := lock.OwnerFrom(lock.NewOwner(t.Context()))
				if _, again := seen.LoadOrStore(o, true); again {
					t.Errorf("owner %v was given twice", o)
				}
			}
		})
	}
	wg.Wait()
}
