package shop

import (
	"context"
	"fmt"

	"github.com/latchkey-go/latchkey/cmd/latchkey-gen/internal/store"
)

// A Cache keeps values of any type.
type Cache[K comparable, V fmt.Stringer] interface {
	// Put has a key of a type that is known when the program starts.
	//
	//latchkey:guard cache:#{k}
	Put(ctx context.Context, k K, v V) (old V, _ error)
	// Drop has one of a type that is known before.
	//
	//latchkey:guard place:#{p.City}
	Drop(ctx context.Context, p store.Place) error
	Get(K) (V, bool)
	loader[V]
}

type loader[T any] interface {
	//latchkey:guard load:#{name}
	Load(ctx context.Context, name string, into *T) error
}

// Swap is generic as well.
//
//latchkey:guard #{[string(a), string(b)]}; when=a != b
func Swap[T ~string, L []T](ctx context.Context, a, b T, rest L) (T, error) { return b, ctx.Err() }
