package lock_test

import (
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
		{lock.Request{Key: "k", Kind: 255}, "lock: unknown kind 255"},
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
