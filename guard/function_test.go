package guard_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/lock/memlock"
)

type tenantKey struct{}

func tenant(ctx context.Context) (string, error) {
	name, ok := ctx.Value(tenantKey{}).(string)
	if !ok {
		return "", errNoTenant
	}
	return name, nil
}

var errNoTenant = errors.New("no tenant")

func TestFunction(t *testing.T) {
	type req struct{ ID string }
	locker := memlock.New()
	g := guard.Must(guard.New(locker, guard.Name("g"), guard.TemplateFunc("tenant", tenant),
		guard.Key("#{tenant()}:#{req.ID}"), guard.When(`tenant() != "test"`)))
	f := guard.Must(guard.Func(g, func(ctx context.Context, _ req) (bool, error) {
		return locker.ForceUnlock("acme:7"), nil
	}))
	held, err := f(context.WithValue(t.Context(), tenantKey{}, "acme"), req{"7"})
	if !held || !errors.Is(err, guard.ErrLost) {
		t.Errorf("call = %v, %v; want the lock acme:7 to have been held", held, err)
	}
	if held, err := f(context.WithValue(t.Context(), tenantKey{}, "test"), req{"7"}); held || err != nil {
		t.Errorf("call with the condition false = %v, %v", held, err)
	}
	if _, err := f(t.Context(), req{"7"}); !errors.Is(err, guard.ErrFault) || !errors.Is(err, errNoTenant) {
		t.Errorf("call of a function that fails = %v, want ErrFault with its error", err)
	}
}

func TestFunctionIsChecked(t *testing.T) {
	type req struct{ ID string }
	g := guard.Must(guard.New(memlock.New(), guard.Name("g"), guard.TemplateFunc("tenant", tenant), guard.Key("#{tenannt()}:#{req.ID}")))
	_, err := guard.Func(g, func(context.Context, req) (bool, error) { return true, nil })
	if err == nil || !strings.Contains(err.Error(), "tenannt") || !strings.Contains(err.Error(), "tenant") {
		t.Errorf("Func = %v, want the unknown function and the nearest name", err)
	}
}
