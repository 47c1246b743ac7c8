package lock_test

import (
	"strings"
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

// What levels and a rate can't be is said, whichever locker is asked.
func TestValidateBounds(t *testing.T) {
	good := lock.Request{Key: "user:1", Kind: lock.Permit, Limit: 1, Levels: []lock.Level{{"all", 20}}, Rate: lock.Rate{Permits: 10, Interval: time.Minute}}
	for name, change := range map[string]func(*lock.Request){
		"":                              func(*lock.Request) {},
		"a rate alone":                  func(r *lock.Request) { r.Limit, r.Levels = 0, nil },
		"bad: of another kind":          func(r *lock.Request) { r.Kind = lock.Exclusive },
		"bad: levels, no limit":         func(r *lock.Request) { r.Limit = 0 },
		"bad: negative limit":           func(r *lock.Request) { r.Limit = -1 },
		"bad: a level without a key":    func(r *lock.Request) { r.Levels[0].Key = "" },
		"bad: a level without a number": func(r *lock.Request) { r.Levels[0].Limit = 0 },
		"bad: one key twice":            func(r *lock.Request) { r.Levels[0].Key = r.Key },
		"bad: two levels of one key":    func(r *lock.Request) { r.Levels = []lock.Level{{"all", 1}, {"all", 2}} },
		"bad: four levels":              func(r *lock.Request) { r.Levels = []lock.Level{{"a", 1}, {"b", 2}, {"c", 3}} },
		"bad: rate of nothing":          func(r *lock.Request) { r.Rate.Permits = 0 },
		"bad: rate within nothing":      func(r *lock.Request) { r.Rate.Interval = time.Microsecond },
		"bad: no bound at all":          func(r *lock.Request) { r.Limit, r.Levels, r.Rate = 0, nil, lock.Rate{} },
	} {
		r := good
		r.Levels = append([]lock.Level(nil), good.Levels...)
		change(&r)
		if err := r.Validate(); (err != nil) != strings.HasPrefix(name, "bad") {
			t.Errorf("%q: %v", name, err)
		}
	}
}
