// Package keyexpr turns requests into the keys of locks.
//
// A template is literal text with holes, order:#{req.OrderID}:#{lower(header.Tenant)}. It is
// parsed and type-checked once, against the [Roots] that an adapter can offer, so that a
// misspelt field, a missing brace or a float in a key stops the program when it starts, with a
// place and the name that was probably meant:
//
//	tmpl, err := keyexpr.Parse("order:#{req.OrderID}", keyexpr.Roots{"req": keyexpr.TypeFor[PayRequest]()})
//	…
//	keys, err := tmpl.Expand(ctx, facts)
//
// Keys are made so that they can be trusted. A template that reads nothing of the request is an
// error, unless [OneKey] says that it is meant. A value that is nil or empty is an error that
// matches [ErrValue]: it never makes a key that unrelated requests share. A number that a proto3
// message leaves out is no such value, but 0, unless its field is optional: required(req.Id)
// refuses it. A value is escaped where it could pass for the literal text around it, so that
// different values never make the same key, and [Template.Match] reads them back. README.md in
// this folder teaches the language.
//
// Most programs don't import this package: they write templates in the options and tags of
// package guard. Package spel beside it is for programs that share locks with a service in Java.
package keyexpr

// How a text becomes a key:
//
//	scan → resolve → compile → render
//
//	scan      scan.go cuts a template into literals and the sources of holes. alike.go refuses what was meant to be a hole.
//	resolve   resolve.go goes once through the engine's tree of a hole, with the types of Go in hand. path.go makes one
//	          call of each path, operators.go and call.go hold operators and calls to what is exact, and names.go
//	          explains names that there are not.
//	compile   compile.go lets the engine check and compile what is left, and gives it the functions of functions.go,
//	          numbers.go, compare.go and hash.go.
//	render    internal/run asks for the facts, follows the paths, runs the engine's machine and puts the texts together,
//	          within bounds of steps and bytes.
//
// All but the last happen once, when a program starts. template.go and condition.go lead through the stages. In this file is
// what programs declare: roots, options, and the errors that they get.

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/latchkey-go/latchkey/keyexpr/internal/run"
)

// Roots says what a template may refer to: the name of each root and what is known of it when
// the program starts. A root is a name that an adapter can always give a value for, at a cost
// that it knows: a header costs nothing, a body must be read. So roots are named by the program,
// and asked for by the template.
type Roots map[string]Root

// Root describes one root before there are requests: its type, or the names that it has. Its
// zero value is a root of type any, about which nothing can be checked at start. Two adapters
// describe the same kind of request in two ways: gRPC knows the type of a message, and HTTP the
// names in a route.
type Root struct{ of run.Root }

// TypeFor is a root whose values are of type T. An any, as of a message that any of several
// types can be, is a root of no known type.
func TypeFor[T any]() Root { return Type(reflect.TypeFor[T]()) }

// Type is a root whose values are of type t; nil stands for any. A type that says nothing, such
// as any, is as if it were not given.
func Type(t reflect.Type) Root {
	if t == nil || t.Kind() == reflect.Interface && t.NumMethod() == 0 {
		return Root{}
	}
	return Root{run.Root{Type: t}}
}

// Names is a root whose value is a Lookup that has these names and no others, such as the path
// values of a route. A template that uses another name is refused at start. The names are copied
// and sorted, so that suggestions come in one order, and a caller may go on using its slice.
func Names(names ...string) Root {
	names = slices.Clone(names)
	slices.Sort(names)
	return Root{run.Root{Lookup: true, Closed: true, Names: slices.Compact(names)}}
}

// AnyName is a root whose value is a Lookup that may have any name, such as the headers of a
// request. Nothing is known of its names. A header that is misspelt can't be found at start; it
// is nil for each request, and nil is no key.
func AnyName() Root { return Root{run.Root{Lookup: true}} }

// Lookup is the value of a root whose members are looked up by name for each request: path
// values, headers, a query, metadata. In a template it is used as header.Tenant or
// header["X-Tenant-Id"]. A name that is not there (ok is false) is nil, and so refused unless
// `?? "none"` follows. An error fails the expansion and is returned wrapped, as that of [Facts]:
// for a name that is there twice, or can't be read. It answers with an error rather than with
// the first of two values, as the handler may use the other one.
type Lookup func(name string) (value string, ok bool, err error)

// Find calls f.
func (f Lookup) Find(name string) (value string, ok bool, err error) { return f(name) }

// Facts gives the value of one root. An expansion calls it at most once for each root, and only
// for those that the template needs. The value must be assignable to the type in Roots, and be a
// Lookup for Names and AnyName. An error fails the expansion and is returned wrapped, so that
// errors.Is still sees it. A panic of it goes on, as it is the adapter's own.
type Facts func(root string) (any, error)

// Option changes how Parse and ParseCondition read a text. It is an interface without exported
// methods, so that options can be added without breaking anybody.
type Option interface{ apply(*config) }

// config is filled in by options.
type config struct {
	funcs  []userFunc
	oneKey bool
}

type optionFunc func(*config)

func (f optionFunc) apply(c *config) { f(c) }

// OneKey says that a template which reads nothing of the request is meant: one key for all
// requests, as for a nightly job. It does not let through what is surely a mistake, such as
// ${…}: that no fact is read on purpose says nothing about it.
func OneKey() Option { return optionFunc(func(c *config) { c.oneKey = true }) }

// Func gives templates a function of the user's own under name. fn takes any arguments, after a
// context.Context if it wants that of Expand, and returns a value and perhaps an error: func(ctx
// context.Context, id string) (string, error). Calls are type-checked at start. Lists are copied
// for fn. An error of fn fails the expansion and is returned wrapped; it does not match ErrValue
// unless it does so itself. fn must be safe for concurrent use, and quick: it runs for each
// request, before the lock.
//
// A call counts as reading the request if fn takes a context or the call has an argument that
// does. A function that is given a name which exists already is refused, so that lower(x) is the
// same in all programs.
func Func(name string, fn any) Option { return userFunc{name, fn} }

// userFunc is a function of the user's own. Its types are read by reflection when it is
// declared, and not when it is first called.
type userFunc struct {
	name string
	fn   any
}

func (f userFunc) apply(c *config) { c.funcs = append(c.funcs, f) }

func newConfig(opts []Option) (c config) {
	for _, o := range opts {
		o.apply(&c)
	}
	return c
}

// ErrValue is matched by every error of Expand and Eval that is the fault of a request's values:
// nil or empty where a key needs something, a type that is no key material, an expression that
// failed. Their texts name the hole, never its value, except that of a panic, which is for the
// log: it says what the panic was given, and where it happened. An adapter answers it with a
// client's error, and everything else with one of its own. An error of one hole has a method
// Fact() string, found by errors.As, that returns the hole's text without the error's: it may be
// sent to the client.
var ErrValue = run.ErrValue

// Error is a fault in a template or condition, found at start. A guard that can't be built
// prints Detail, which shows the place.
type Error struct {
	Text   string // the whole text
	Offset int    // where in Text the fault begins, in bytes; at most len(Text)
	Reason string // what is wrong and, where it can be guessed, what was meant
}

// Error returns one line: the reason and the offset. The text is abridged, as it goes into logs
// that are read by lines. That may cut off the place at the offset; Detail shows it.
func (e *Error) Error() string {
	return fmt.Sprintf("keyexpr: %s (at offset %d of %q)", e.Reason, e.Offset, run.Abridge(e.Text))
}

// Detail returns the error over several lines, for people: the reason, the line of the text that
// is at fault, and a caret under the place. Tabs are kept in front of the caret, since nobody
// knows how wide they are where this is shown.
func (e *Error) Detail() string {
	start := strings.LastIndexByte(e.Text[:e.Offset], '\n') + 1
	line, _, _ := strings.Cut(e.Text[start:], "\n")
	var pad strings.Builder
	for _, r := range e.Text[start:e.Offset] {
		if r != '\t' {
			r = ' '
		}
		pad.WriteRune(r)
	}
	return fmt.Sprintf("keyexpr: %s\n    %s\n    %s^", e.Reason, line, pad.String())
}

// errAt keeps the promises of Error: one line, and an offset within the text. Reasons of the
// engine can have several lines, and offsets behind the text where something is missing at the
// end.
func errAt(text string, off int, format string, args ...any) *Error {
	reason := strings.Join(strings.Fields(fmt.Sprintf(format, args...)), " ")
	return &Error{Text: text, Offset: min(max(off, 0), len(text)), Reason: reason}
}

// byteOffset converts an offset in runes, as the engine counts, into one in bytes. A place
// behind the text is its end, which is where something is missing.
func byteOffset(s string, runes int) int {
	for i := range s {
		if runes--; runes < 0 {
			return i
		}
	}
	return len(s)
}
