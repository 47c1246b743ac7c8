package adapter_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/guard/adapter"
	"github.com/latchkey-go/latchkey/keyexpr"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/memlock"
)

func TestAbilitiesOfAdapters(t *testing.T) {
	roots := keyexpr.Roots{"method": keyexpr.TypeFor[string]()}
	for _, tt := range []struct {
		name string
		spec guard.Spec
		can  []adapter.Ability
		want string // a part of the error; empty if there is none
	}{
		{"methods", guard.Spec{Methods: "POST"}, []adapter.Ability{adapter.ServesMethods}, ""},
		{"methods without HTTP", guard.Spec{Methods: "POST"}, []adapter.Ability{adapter.ServesFallback}, "methods=POST"},
		{"fallback", guard.Spec{Busy: guard.RunFallback}, []adapter.Ability{adapter.ServesFallback}, ""},
		{"fallback for one", guard.Spec{Busy: guard.Skip}, []adapter.Ability{adapter.ServesFallback}, ""},
		{"fallback without one", guard.Spec{Outage: guard.RunFallback}, []adapter.Ability{adapter.ServesMethods}, "policy fallback without a fallback"},
		{"idle fallback", guard.Spec{Busy: guard.Skip, Outage: guard.RunUnlocked}, []adapter.Ability{adapter.ServesFallback}, "never runs"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.spec.Name, tt.spec.Key = "order.settle", "order:#{method}"
			g := guard.Must(guard.New(memlock.New(), guard.FromSpec(tt.spec)))
			_, err := adapter.Prepare(g, roots, tt.can...)
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("Prepare = %v, want %q in it", err, tt.want)
			}
			if err != nil && !strings.Contains(err.Error(), `"order.settle"`) {
				t.Errorf("Prepare = %v, want the guard's name", err)
			}
		})
	}
	g := guard.Must(guard.New(memlock.New(), guard.Name("pay"), guard.Key("#{req}"), guard.Methods("POST")))
	if _, err := guard.Func(g, func(context.Context, string) (int, error) { return 0, nil }); err == nil || !strings.Contains(err.Error(), "methods") {
		t.Errorf("Func = %v, want that it has no methods", err)
	}
}

func TestRunOrRunsTheFallback(t *testing.T) {
	locker := memlock.New()
	held, err := locker.Acquire(t.Context(), lock.Request{Key: "order:POST"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := held.Release(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}()
	g := guard.Must(guard.New(locker, guard.Name("order.settle"), guard.Key("order:#{method}")))
	r := guard.Must(adapter.Prepare(g, keyexpr.Roots{"method": keyexpr.TypeFor[string]()}, adapter.ServesFallback))
	own := errors.New("own")
	ran, err := r.RunOr(t.Context(), func(string) (any, error) { return "POST", nil },
		func(context.Context) error { t.Error("the work ran"); return nil },
		func(_ context.Context, err error) error {
			if !errors.Is(err, guard.ErrBusy) {
				t.Errorf("reason = %v, want ErrBusy", err)
			}
			return own
		})
	if ran || err != own {
		t.Errorf("RunOr = %v, %v", ran, err)
	}
}
