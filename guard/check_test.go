package guard_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/memlock"
)

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
	if err := guard.BindFields(g, target, func(f guard.Field) (reflect.Value, error) {
		bound = append(bound, f.Path)
		return f.Value, nil
	}); err == nil || !strings.Contains(err.Error(), "nil *guard_test.cycle") { // which no type shows
		t.Fatal(err)
	}
	refused := errors.New("refused")
	err := guard.CheckFields(g, reflect.TypeFor[*both](), func(f guard.Field) error {
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
		"nil guard":             (*guard.Guard)(nil).CheckRequest(nil),
		"New did not make":      new(guard.Guard).CheckRequest(nil),
		"a nil guard":           guard.CheckFields(nil, reflect.TypeFor[nilFunc](), nil),
		"struct, not *int":      guard.CheckFields(g, reflect.TypeFor[int](), nil),
		"no field has a guard":  guard.CheckFields(g, reflect.TypeFor[untagged](), nil),
		`give guard.Name`:       guard.Must(guard.New(memlock.New(), guard.Key("nightly"))).CheckRequest(nil),
		"unknown name req: the": guard.Must(guard.New(memlock.New(), guard.Name("n"), guard.Key("#{req.ID}"))).CheckRequest(nil),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q in it", err, want)
		}
	}
}

// plainOnly is a locker that says what it serves.
type plainOnly struct{ lock.Locker }

func (plainOnly) Serves(k lock.Kind) error {
	if k == lock.Exclusive {
		return nil
	}
	return fmt.Errorf("%w: %v locks", lock.ErrUnsupported, k)
}

// A kind of lock that the locker can't serve is refused at start, and not at each call.
func TestKindsThatALockerServes(t *testing.T) {
	for _, tt := range []struct {
		kind lock.Kind
		want error
	}{{lock.Exclusive, nil}, {lock.Fair, lock.ErrUnsupported}, {lock.Fenced, lock.ErrUnsupported}} {
		g, err := guard.New(plainOnly{memlock.New()}, guard.Name("n"), guard.Key("k"), guard.Kind(tt.kind))
		if err == nil {
			_, err = guard.Job(g, func(context.Context) error { return nil })
		}
		if !errors.Is(err, tt.want) || (err == nil) != (tt.want == nil) {
			t.Errorf("%v: %v, want %v", tt.kind, err, tt.want)
		}
	}
}
