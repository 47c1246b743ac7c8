package guard_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/memlock"
	"github.com/latchkey-go/latchkey/redisson"
)

// Lockers that serve levels and rates say which bound a call has met, and nothing is left of a call that was refused.
func TestBoundsOfLockers(t *testing.T) {
	client, err := redisson.New(redistest.Any(t).Client(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	for name, l := range map[string]lock.Locker{"memlock": memlock.New(), "redisson": client} {
		g := guard.Must(guard.New(l, guard.Name("call"), guard.Key("{bounds}:user:#{req.User}"), guard.Limit(1), guard.Level(3, "{bounds}:all"),
			guard.LevelFrom("#{req.Plan.Slots}", "{bounds}:tenant:#{req.Tenant}"), guard.Rate(3, time.Hour)))
		var f func(context.Context, Call) (string, error)
		f = guard.Must(guard.Func(g, func(_ context.Context, c Call) (string, error) {
			if len(c.Tags) == 0 {
				return "all run", nil
			}
			user, tenant, _ := strings.Cut(c.Tags[0], "@")
			next := Call{User: user, Tenant: tenant, Plan: c.Plan, Tags: c.Tags[1:]}
			return f(t.Context(), next)
		}))
		for _, tt := range []struct {
			users string // who come one under the other
			level string
			rate  bool
		}{
			{"a@x b@x c@y", "", false},
			{"a@x a@y", "{bounds}:user:#{req.User}", false},
			{"b@x c@x d@x", "{bounds}:tenant:#{req.Tenant}", false},
			{"e@x f@x g@y h@y", "{bounds}:all", false},
			{"a@x", "", false},
			{"a@x", "", true}, // for the fourth time, as one was refused
		} {
			c := Call{User: "first", Tenant: "z", Tags: strings.Fields(tt.users)}
			c.Plan.Slots = 2
			user, tenant, _ := strings.Cut(c.Tags[0], "@")
			c.User, c.Tenant, c.Tags = user, tenant, c.Tags[1:]
			got, err := f(t.Context(), c)
			e, refused := errors.AsType[*guard.Error](err)
			if want := tt.level != "" || tt.rate; refused != want || !refused && got != "all run" {
				t.Errorf("%s: %s: %q, %v", name, tt.users, got, err)
			} else if refused && (e.Err != guard.ErrBusy || e.Level != tt.level || e.Rate != tt.rate || tt.rate && e.RetryAfter < time.Minute) {
				t.Errorf("%s: %s: %+v, want level %q, rate %t", name, tt.users, e, tt.level, tt.rate)
			}
		}
	}
}
