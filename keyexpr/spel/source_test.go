package spel

import (
	"fmt"
	"go/types"
	"reflect"
	"testing"

	"github.com/latchkey-go/latchkey/internal/gotype"
	"github.com/latchkey-go/latchkey/internal/gotype/gotypetest"
	"github.com/latchkey-go/latchkey/keyexpr"
)

// TestTypesOfSourceAreCheckedAlike is the test of that name in package keyexpr, for texts of Java.
func TestTypesOfSourceAreCheckedAlike(t *testing.T) {
	pkg, err := gotypetest.Load(false)
	if err != nil {
		t.Fatal(err)
	}
	world := gotype.New()
	started := 0
	for _, compiled := range []reflect.Type{reflect.TypeFor[shop](), reflect.TypeFor[javaOrder]()} {
		source := world.Of(types.NewPointer(pkg.Type(compiled.Name())))
		for _, text := range texts(t) {
			if len(text) > 300 { // which is about size and not about types
				continue
			}
			for _, k := range []*Key{Expression(text, Params("order")), Redisson(text), Lock4j("", []string{text}, Method("a.B", "c"))} {
				want, ok := verdict(k, reflect.PointerTo(compiled))
				if got, _ := verdict(k, source); got != want {
					t.Errorf("%v: %q is checked against the source as\n%s\nand when the program starts as\n%s", compiled, text, got, want)
				}
				if ok {
					started++
				}
			}
		}
	}
	if started < 700 {
		t.Errorf("%d keys start: too few to show anything", started)
	}
}

// verdict is all that can be seen of a key at start, and whether it starts.
func verdict(k *Key, order reflect.Type) (text string, ok bool) {
	key, err := k.Parse(keyexpr.Roots{"req": keyexpr.Type(order)})
	if err != nil {
		return err.Error(), false
	}
	return fmt.Sprintf("%s %q %q", key.Shape(), key.Fields(), key.Roots()), true
}
