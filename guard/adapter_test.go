package guard

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/latchkey-go/latchkey/keyexpr"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/memlock"
)

func TestAbilitiesOfAdapters(t *testing.T) {
	roots := keyexpr.Roots{"method": keyexpr.TypeFor[string]()}
	for _, tt := range []struct {
		name string
		spec Spec
		can  []Ability
		want string // a part of the error; empty if there is none
	}{
		{"methods", Spec{Methods: "POST"}, []Ability{ServesMethods}, ""},
		{"methods without HTTP", Spec{Methods: "POST"}, []Ability{ServesFallback}, "methods=POST"},
		{"fallback", Spec{Busy: RunFallback}, []Ability{ServesFallback}, ""},
		{"fallback for one", Spec{Busy: Skip}, []Ability{ServesFallback}, ""},
		{"fallback without one", Spec{Outage: RunFallback}, []Ability{ServesMethods}, "policy fallback without a fallback"},
		{"idle fallback", Spec{Busy: Skip, Outage: RunUnlocked}, []Ability{ServesFallback}, "never runs"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.spec.Name, tt.spec.Key = "order.settle", "order:#{method}"
			g := Must(New(memlock.New(), FromSpec(tt.spec)))
			_, err := g.Prepare(roots, tt.can...)
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("Prepare = %v, want %q in it", err, tt.want)
			}
			if err != nil && !strings.Contains(err.Error(), `"order.settle"`) {
				t.Errorf("Prepare = %v, want the guard's name", err)
			}
		})
	}
	g := Must(New(memlock.New(), Name("pay"), Key("#{req}"), Methods("POST")))
	if _, err := Func(g, func(context.Context, string) (int, error) { return 0, nil }); err == nil || !strings.Contains(err.Error(), "methods") {
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
	g := Must(New(locker, Name("order.settle"), Key("order:#{method}")))
	r := Must(g.Prepare(keyexpr.Roots{"method": keyexpr.TypeFor[string]()}, ServesFallback))
	own := errors.New("own")
	ran, err := r.RunOr(t.Context(), func(string) (any, error) { return "POST", nil },
		func(context.Context) error { t.Error("the work ran"); return nil },
		func(_ context.Context, err error) error {
			if !errors.Is(err, ErrBusy) {
				t.Errorf("reason = %v, want ErrBusy", err)
			}
			return own
		})
	if ran || err != own {
		t.Errorf("RunOr = %v, %v", ran, err)
	}
}
