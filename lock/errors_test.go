package lock_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/lock"
)

func TestErrorsMatch(t *testing.T) {
	errNetwork := errors.New("network down")
	all := []error{lock.ErrBusy, lock.ErrLost, lock.ErrMaxHold, lock.ErrNotHeld, lock.ErrUnsupported, lock.ErrRefused, errNetwork}
	for _, tt := range []struct {
		err     error
		matches []error
		text    string
	}{
		{&lock.BusyError{}, []error{lock.ErrBusy}, "lock: held by others (waited 0s)"},
		{&lock.BusyError{Waited: 2 * time.Second, Remaining: time.Minute}, []error{lock.ErrBusy},
			"lock: held by others (waited 2s, remaining lease 1m0s)"},
		{&lock.BusyError{Waited: time.Second, Related: true}, []error{lock.ErrBusy},
			"lock: held by others (waited 1s): " +
				"held by another call under the same outer hold; pass the context that its Lock returned"},
		{&lock.BusyError{Waited: time.Second, Remaining: time.Minute, Related: true}, []error{lock.ErrBusy},
			"lock: held by others (waited 1s, remaining lease 1m0s): " +
				"held by another call under the same outer hold; pass the context that its Lock returned"},
		{&lock.KindError{Held: lock.Fair, Wanted: lock.Read}, []error{lock.ErrUnsupported},
			"lock: wanted as read, but held as fair: use kinds of one family for a key"},
		{&lock.KindError{Held: lock.Write, Wanted: lock.Permit}, []error{lock.ErrUnsupported},
			"lock: wanted as permit, but held as write: use kinds of one family for a key"},
		{&lock.KindError{Held: lock.Read, Wanted: lock.Write}, []error{lock.ErrUnsupported},
			"lock: wanted as write, but this call holds it as read and would wait for itself: " +
				"release the read lock first, or take the write lock from the start"},
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
