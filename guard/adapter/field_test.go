package adapter_test

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/guard/adapter"
	"github.com/latchkey-go/latchkey/lock/memlock"
)

type (
	nilFunc struct {
		First  func(context.Context, Order) error `guard:"order:#{req.ID}"`
		Second func(context.Context, Order) error `guard:"order:#{req.ID}"`
	}
	untagged struct {
		F func(context.Context, Order) error
	}
	cycle struct {
		*cycle                                    //nolint:unused // reflection comes to it
		F      func(context.Context, Order) error `guard:"order; one-key"`
	}
)

func dropOrder(context.Context, Order) error { return nil }

// CheckFields comes to the fields that BindFields comes to, also to those of two fields of a type, and ends where a type
// leads back to itself.
func TestCheckFieldsComesToAllFields(t *testing.T) {
	type both struct {
		EU, US *nilFunc
		Ring   *cycle
	}
	ring := &cycle{F: dropOrder}
	target := &both{&nilFunc{dropOrder, dropOrder}, &nilFunc{dropOrder, dropOrder}, ring}
	g := guard.Must(guard.New(memlock.New(), guard.Fair()))
	var bound, checked []string
	if err := adapter.BindFields(g, target, func(f adapter.Field) (reflect.Value, error) {
		bound = append(bound, f.Path)
		return f.Value, nil
	}); err == nil || !strings.Contains(err.Error(), "nil *adapter_test.cycle") { // which no type shows
		t.Fatal(err)
	}
	refused := errors.New("refused")
	err := adapter.CheckFields(g, reflect.TypeFor[*both](), func(f adapter.Field) error {
		checked = append(checked, f.Path)
		if f.Type != reflect.TypeFor[func(context.Context, Order) error]() || f.Value.IsValid() || f.Guard.Spec().Name != f.Path {
			t.Errorf("field %+v", f)
		}
		return refused
	})
	if want := []string{"both.EU.First", "both.EU.Second", "both.US.First", "both.US.Second", "both.Ring.F"}; !slices.Equal(checked, want) || !slices.Equal(bound, want) {
		t.Errorf("checked %q and bound %q, want %q", checked, bound, want)
	}
	if !errors.Is(err, refused) || !strings.Contains(err.Error(), "Bind of both.US.Second: refused") {
		t.Errorf("error %v", err)
	}
}

func TestChecksOfNothing(t *testing.T) {
	g := guard.Must(guard.New(memlock.New()))
	for want, err := range map[string]error{
		"nil guard":             adapter.CheckRequest(nil, nil),
		"New did not make":      adapter.CheckRequest(new(guard.Guard), nil),
		"a nil guard":           adapter.CheckFields(nil, reflect.TypeFor[nilFunc](), nil),
		"struct, not *int":      adapter.CheckFields(g, reflect.TypeFor[int](), nil),
		"no field has a guard":  adapter.CheckFields(g, reflect.TypeFor[untagged](), nil),
		`give guard.Name`:       adapter.CheckRequest(guard.Must(guard.New(memlock.New(), guard.Key("nightly"))), nil),
		"unknown name req: the": adapter.CheckRequest(guard.Must(guard.New(memlock.New(), guard.Name("n"), guard.Key("#{req.ID}"))), nil),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q in it", err, want)
		}
	}
}
