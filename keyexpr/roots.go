package keyexpr

import (
	"reflect"
	"slices"

	"github.com/latchkey-go/latchkey/keyexpr/internal/run"
)

// Roots says what a template may refer to: the name of each root and what is known of it when the program starts.
type Roots map[string]Root

// Root is what is known of one root before there are requests: its type, or the names that it has. Its zero value is
// a root of type any, about which nothing can be checked at start.
type Root struct{ of run.Root }

// TypeFor is a root whose values are of type T.
func TypeFor[T any]() Root { return Type(reflect.TypeFor[T]()) }

// Type is a root whose values are of type t; nil stands for any.
func Type(t reflect.Type) Root {
	if t == nil || t.Kind() == reflect.Interface && t.NumMethod() == 0 {
		return Root{}
	}
	return Root{run.Root{Type: t}}
}

// Names is a root whose value is a Lookup that has these names and no others, such as the path values of a route. A
// template that uses another name is refused at start.
func Names(names ...string) Root {
	names = slices.Clone(names)
	slices.Sort(names)
	return Root{run.Root{Lookup: true, Closed: true, Names: slices.Compact(names)}}
}

// AnyName is a root whose value is a Lookup that may have any name, such as the headers of a request.
func AnyName() Root { return Root{run.Root{Lookup: true}} }

// Lookup is the value of a root whose members are looked up by name for each request: path values, headers, a query,
// metadata. In a template it is used as header.Tenant or header["X-Tenant-Id"]. A name that is not there (ok is false)
// is nil, and so refused unless `?? "none"` follows. An error fails the expansion and is returned wrapped, as that of
// [Facts]: for a name that is there twice, or can't be read.
type Lookup func(name string) (value string, ok bool, err error)

// Find calls f.
func (f Lookup) Find(name string) (value string, ok bool, err error) { return f(name) }

// Facts gives the value of one root. It is asked at most once for each root in an expansion, and only for those that
// the template needs. The value must be assignable to the type in Roots, and be a Lookup for Names and AnyName. An error
// fails the expansion and is returned wrapped, so that errors.Is still sees it.
type Facts func(root string) (any, error)
