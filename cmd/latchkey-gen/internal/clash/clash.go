// Package clash calls everything as generated code would.
package clash

import (
	stdcontext "context"
	stderrors "errors"
)

type (
	guard  string
	lock   int
	locker interface {
		//latchkey:guard x:#{context}
		guard(opts stdcontext.Context, context guard, errors lock) (lock, guard, error)
		//latchkey:guard y:#{next}
		Lock(w stdcontext.Context, next lock) (locker, error)
		//latchkey:guard z:#{next}
		Select(w stdcontext.Context, next lock) error
		next()
	}
	next    struct{ locker }
	context struct{}
	opts    struct{}
	w       struct{}
	adapter struct{}
)

//latchkey:guard call:#{ctx}:#{call}
func call(_ stdcontext.Context, ctx guard, call lock) (a, p guard, key error) {
	return "", "", stderrors.ErrUnsupported
}

var (
	errors = call
	err    = stderrors.ErrUnsupported
	_      = []any{context{}, opts{}, w{}, adapter{}, next{}, err, errors}
)
