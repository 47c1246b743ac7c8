package lock_test

import (
	"context"
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
			"lock: held by others (waited 1s): another call under the same outer hold; to re-enter, pass on its context"},
		{&lock.BusyError{Waited: time.Second, Remaining: time.Minute, Here: true}, []error{lock.ErrBusy},
			"lock: held by others (waited 1s, remaining lease 1m0s): a call of this process; to re-enter, pass on its context"},
		{&lock.BusyError{Here: true, Holder: "pay"}, []error{lock.ErrBusy},
			"lock: held by others (waited 0s): a call of this process (pay); to re-enter, pass on its context"},
		{&lock.BusyError{Here: true, Related: true, Holder: "pay"}, []error{lock.ErrBusy},
			"lock: held by others (waited 0s): another call under the same outer hold (pay); to re-enter, pass on its context"},
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

// Of several holders, the error names one that is related to the caller, or else any that has a name.
func TestHeldBy(t *testing.T) {
	root := t.Context()
	outer := newFakeHold(root, "outer")
	kin, caller := newFakeHold(outer.ctx, "kin").ctx, outer.ctx
	type holder struct {
		ctx  context.Context
		name string
	}
	for _, tt := range []struct {
		holders []holder
		want    lock.BusyError
	}{
		{nil, lock.BusyError{}},
		{[]holder{{root, ""}}, lock.BusyError{Here: true}},
		{[]holder{{root, ""}, {root, "a"}, {root, "b"}}, lock.BusyError{Here: true, Holder: "a"}},
		{[]holder{{root, "a"}, {kin, "b"}, {root, "c"}}, lock.BusyError{Here: true, Related: true, Holder: "b"}},
		{[]holder{{kin, ""}, {root, "a"}}, lock.BusyError{Here: true, Related: true}},
		{[]holder{{root, "a"}, {kin, ""}}, lock.BusyError{Here: true, Related: true}},
	} {
		var got lock.BusyError
		for _, h := range tt.holders {
			got.HeldBy(caller, h.ctx, h.name)
		}
		if got != tt.want {
			t.Errorf("held by %v: %+v, want %+v", tt.holders, got, tt.want)
		}
	}
}
