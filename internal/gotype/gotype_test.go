package gotype_test

import (
	"context"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"reflect"
	"testing"
	"time"
	"unsafe"

	"github.com/latchkey-go/latchkey/internal/gotype"
	"github.com/latchkey-go/latchkey/internal/gotype/gotypetest"
)

// Types as requests have them, and worse.
type (
	Tenant string
	Status int32
	Flag   bool
	IDs    []string
	UUID   [16]byte
	Tree   []Tree
	Links  map[string]*Links
	Chain  *Chain
	Any    any

	line struct {
		SKU   string `json:"sku,omitempty"`
		Count int
		note  string
	}
	base struct {
		ID   string
		Kind string
	}
	Extras struct {
		*base
		Kind string
		At   time.Time
	}
	node struct {
		Next        *node
		Next2, Prev *node
		Kids        []node
	}
	Order struct {
		base
		Extras
		_      struct{} `guard:"order:#{req.ID}; wait=2s"`
		Tenant Tenant
		Status *Status
		Lines  []line
		ByName map[Tenant][]*line
		Raw    json.RawMessage
		Number json.Number
		Sum    big.Int
		Wait   time.Duration
		Any    any
		Err    error
		Named  Any
		Shape  Shape
		Local  interface{ private() int }
		Inline struct{ A, B int }
		Tagged struct {
			A string `json:"a" guard:"key"`
			base
			*line
		}
		Call     func(context.Context, Order, ...Tenant) (line, error)
		Out      chan<- line
		In       <-chan chan (<-chan Tenant)
		Two      chan (<-chan line)
		Array    [4]line
		Pointer  unsafe.Pointer
		Complex  complex64
		Box      Box[string]
		Boxes    Pair[Box[*line], map[string]struct{ X Tenant }]
		Request  *http.Request
		Tree     Tree
		Links    Links
		Chain    Chain
		UUID     UUID
		Node     node
		Alias    renamed
		AliasBox boxOf[Tenant]
		Byte     byte
		Rune     rune
		IDs      IDs
		Flag     Flag
		unseen   int
	}
	Shape interface {
		fmt.Stringer
		Area(scale int, more ...Tenant) (Status, error)
		hidden(line)
	}
	Box[T any]     struct{ Value T }
	Pair[A, B any] struct {
		First  A
		Second B
	}
	renamed      = line
	boxOf[T any] = Box[T]
)

func (t Tenant) String() string                    { return string(t) }
func (s *Status) MarshalText() ([]byte, error)     { return nil, errors.New(fmt.Sprint(*s)) }
func (u UUID) String() string                      { return fmt.Sprintf("%x", u[:]) }
func (o Order) Total() int                         { return o.unseen }
func (o *Order) Apply(f func(Order) *Order) *Order { return f(*o) }
func (o *Order) hidden()                           { o.unseen++ }
func (b base) Describe() string                    { return b.ID }
func (b *base) Rename(name string)                 { b.ID = name }
func (b Box[T]) Get() T                            { return b.Value }
func (b *Box[T]) Put(v T) Box[T]                   { b.Value = v; return *b }
func (l line) String() string                      { return l.note }

var _ = (*Order).hidden

// walker compares types of the source with the compiled ones, and follows both to all that they lead to.
type walker struct {
	t     *testing.T
	pairs map[reflect.Type]reflect.Type // compiled, source
}

func (w *walker) compare(compiled, source reflect.Type) {
	if before, ok := w.pairs[compiled]; ok {
		if before != source {
			w.t.Errorf("%v is two types of the source", compiled)
		}
		return
	}
	w.pairs[compiled] = source
	check := func(method string, got, want any) {
		if got != want {
			w.t.Errorf("%s of %v = %v, want %v", method, compiled, got, want)
		}
	}
	check("Kind", source.Kind(), compiled.Kind())
	check("String", source.String(), compiled.String())
	check("Name", source.Name(), compiled.Name())
	check("PkgPath", source.PkgPath(), compiled.PkgPath())
	check("Comparable", source.Comparable(), compiled.Comparable())
	check("NumMethod", source.NumMethod(), compiled.NumMethod())
	if w.t.Failed() {
		return
	}
	for m := range compiled.Methods() {
		got, ok := source.MethodByName(m.Name)
		check("Method "+m.Name, ok, true)
		check("Index of "+m.Name, got.Index, m.Index)
		check("PkgPath of "+m.Name, got.PkgPath, m.PkgPath)
		check("String of "+m.Name, got.Type.String(), m.Type.String())
		w.compare(m.Type, got.Type)
	}
	switch compiled.Kind() {
	case reflect.Map:
		w.compare(compiled.Key(), source.Key())
		w.compare(compiled.Elem(), source.Elem())
	case reflect.Array:
		check("Len", source.Len(), compiled.Len())
		w.compare(compiled.Elem(), source.Elem())
	case reflect.Chan:
		check("ChanDir", source.ChanDir(), compiled.ChanDir())
		w.compare(compiled.Elem(), source.Elem())
	case reflect.Pointer, reflect.Slice:
		w.compare(compiled.Elem(), source.Elem())
	case reflect.Func:
		check("IsVariadic", source.IsVariadic(), compiled.IsVariadic())
		check("NumIn", source.NumIn(), compiled.NumIn())
		check("NumOut", source.NumOut(), compiled.NumOut())
		for i := range compiled.NumIn() {
			w.compare(compiled.In(i), source.In(i))
		}
		for i := range compiled.NumOut() {
			w.compare(compiled.Out(i), source.Out(i))
		}
	case reflect.Struct:
		w.fields(compiled, source)
	}
}

func (w *walker) fields(compiled, source reflect.Type) {
	describe := func(f reflect.StructField, ok bool) string {
		return fmt.Sprint(f.Name, " ", f.PkgPath, " ", f.Type, " ", f.Tag, " ", f.Index, f.Anonymous, ok)
	}
	if got, want := source.NumField(), compiled.NumField(); got != want {
		w.t.Fatalf("%v has %d fields, want %d", compiled, got, want)
	}
	for i := range compiled.NumField() {
		want, got := compiled.Field(i), source.Field(i)
		if describe(got, true) != describe(want, true) {
			w.t.Errorf("field %d of %v = %s, want %s", i, compiled, describe(got, true), describe(want, true))
		}
		w.compare(want.Type, got.Type)
	}
	for _, want := range reflect.VisibleFields(compiled) {
		f, ok := compiled.FieldByName(want.Name)
		if got, found := source.FieldByName(want.Name); describe(got, found) != describe(f, ok) {
			w.t.Errorf("field %s of %v = %s, want %s", want.Name, compiled, describe(got, found), describe(f, ok))
		}
		if len(want.Index) > 1 {
			if got := source.FieldByIndex(want.Index); got.Type.String() != want.Type.String() {
				w.t.Errorf("field %v of %v = %v, want %v", want.Index, compiled, got, want)
			}
		}
	}
	if _, ok := source.FieldByName("No such field"); ok {
		w.t.Errorf("%v has a field that it does not have", compiled)
	}
}

func TestTypesOfTheSourceAreThoseThatAreCompiled(t *testing.T) {
	pkg, err := gotypetest.Load(true)
	if err != nil {
		t.Fatal(err)
	}
	world := gotype.New()
	w := &walker{t, make(map[reflect.Type]reflect.Type)}
	for name, compiled := range map[string]reflect.Type{
		"Order": reflect.TypeFor[Order](), "node": reflect.TypeFor[node](), "Extras": reflect.TypeFor[Extras](),
	} {
		source := world.Of(pkg.Type(name))
		w.compare(compiled, source)
		w.compare(reflect.PointerTo(compiled), source.(interface{ PointerTo() reflect.Type }).PointerTo())
	}
	if len(w.pairs) < 200 {
		t.Errorf("compared %d types only", len(w.pairs))
	}
	w.relate()
}

// relate compares what pairs of types are to each other.
func (w *walker) relate() {
	interfaces := []reflect.Type{
		reflect.TypeFor[fmt.Stringer](), reflect.TypeFor[encoding.TextMarshaler](), reflect.TypeFor[error](), reflect.TypeFor[any](), reflect.TypeFor[io.Reader](),
	}
	assignable := 0
	for a, sourceA := range w.pairs {
		for _, i := range interfaces {
			if got, want := sourceA.Implements(i), a.Implements(i); got != want {
				w.t.Errorf("%v implements %v: %v, want %v", a, i, got, want)
			}
		}
		for b, sourceB := range w.pairs {
			got, want := sourceA.AssignableTo(sourceB), a.AssignableTo(b)
			if unknown := a == sourceA && b.Kind() == reflect.Interface && b != sourceB; got != want && !unknown {
				w.t.Errorf("%v is assignable to %v: %v, want %v", a, b, got, want)
			}
			if want && a != b {
				assignable++
			}
		}
	}
	if assignable < 100 {
		w.t.Errorf("%d pairs are assignable", assignable)
	}
}
