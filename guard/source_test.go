package guard_test

import (
	"errors"
	"fmt"
	"go/types"
	"reflect"
	"regexp"
	"strings"
	"sync"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/guard/adapter"
	"github.com/latchkey-go/latchkey/internal/gotype"
	"github.com/latchkey-go/latchkey/internal/gotype/gotypetest"
)

// The tables of mistakes are also those of tools, which know the types of a program by its source. Where a table says what
// Func or Bind make of a declaration, the checks by type must say the same: of the compiled type, and of that in the source.

// sources are these tests.
type sources struct {
	world *gotype.World
	pkg   *gotypetest.Package
	texts map[string][]types.Type // by how package reflect writes them
}

var source = sync.OnceValue(func() *sources {
	s := &sources{gotype.New(), guard.Must(gotypetest.Load(true)), make(map[string][]types.Type)}
	seen := make(map[types.Type]bool)
	for _, tv := range s.pkg.Info.Types {
		s.note(tv.Type, seen)
	}
	for _, obj := range s.pkg.Info.Defs {
		if obj != nil {
			s.note(obj.Type(), seen)
		}
	}
	return s
})

func (s *sources) note(t types.Type, seen map[types.Type]bool) {
	if _, tuple := t.(*types.Tuple); t == nil || tuple || seen[t] {
		return
	}
	seen[t] = true
	text := s.world.Of(t).String()
	s.texts[text] = append(s.texts[text], t)
}

// like returns the type of the source that t was compiled from: it is written alike, and has the same fields.
func (s *sources) like(t reflect.Type) (reflect.Type, error) {
	for _, candidate := range s.texts[t.String()] {
		if like := s.world.Of(candidate); fieldsOf(like) == fieldsOf(t) {
			return like, nil
		}
	}
	return nil, fmt.Errorf("no type in the source of the tests is like %v", t)
}

func fieldsOf(t reflect.Type) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	var b strings.Builder
	if t.Kind() == reflect.Struct {
		for f := range t.Fields() {
			fmt.Fprintf(&b, "%s %v %q\n", f.Name, f.Type, f.Tag)
		}
	}
	return b.String()
}

// checkRequest returns err, which Func or the like has said to a request of type t, if the checks by type say the same.
func checkRequest(g *guard.Guard, t reflect.Type, err error) error {
	like, unlike := source().like(t)
	if unlike != nil {
		return unlike
	}
	return alike(err, adapter.CheckRequest(g, t), adapter.CheckRequest(g, like))
}

// checkFields returns err, which Bind has said to target, if the checks by type say the same.
func checkFields(g *guard.Guard, target any, err error) error {
	t := reflect.TypeOf(target)
	if g == nil || t == nil || t.Kind() != reflect.Pointer || t.Elem().Kind() != reflect.Struct || reflect.ValueOf(target).IsNil() {
		return err
	}
	like, unlike := source().like(t.Elem())
	if unlike != nil && t.Elem().NumField() == 1 { // a test has made it
		like, unlike = source().structLike(t.Elem().Field(0))
	}
	if unlike != nil {
		return unlike
	}
	return alike(err, adapter.CheckFields(g, t, nil), adapter.CheckFields(g, like, nil))
}

// structLike is a struct of one field like f.
func (s *sources) structLike(f reflect.StructField) (reflect.Type, error) {
	like, err := s.like(f.Type)
	if err != nil {
		return nil, err
	}
	t, ok := gotype.Source(like)
	for _, tv := range s.pkg.Info.Types {
		if _, tuple := tv.Type.(*types.Tuple); !ok && tv.Type != nil && !tuple && s.world.Of(tv.Type) == like { // as it is one of all programs
			t, ok = tv.Type, true
		}
	}
	v := types.NewField(0, s.pkg.Types, f.Name, t, false)
	return s.world.Of(types.NewStruct([]*types.Var{v}, []string{string(f.Tag)})), nil
}

// onlyValues are mistakes that no type shows.
var onlyValues = regexp.MustCompile(` is nil$|: nil \*|guarded already|that is a copy|Fallback is a `)

// alike returns err if others, which know only types, say the same.
func alike(err error, others ...error) error {
	want := typed(err)
	if want == "" && err != nil {
		return err
	}
	for _, other := range others {
		if got := typed(other); got != want {
			return errors.Join(err, fmt.Errorf("by its type alone, the check says %q, and in a program %q", got, want))
		}
	}
	return err
}

// typed is what err says about types, a line for each mistake.
func typed(err error) string {
	var lines []string
	for line := range strings.SplitSeq(fmt.Sprint(err), "\n") {
		if !onlyValues.MatchString(line) {
			lines = append(lines, strings.TrimPrefix(line, "<nil>"))
		}
	}
	return strings.Join(lines, "\n")
}
