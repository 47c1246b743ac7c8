package guard

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/latchkey-go/latchkey/keyexpr"
)

// KeyFunc computes the key in Go, in place of Key, where a template can't. An empty key is ErrKey, and so is an error
// that matches ErrKey or keyexpr.ErrValue; one that matches ErrOutage is an outage, any other ErrFault. The guard fits
// calls whose request (the root `req`) is a Req: those of Func, and of adapters that offer one.
func KeyFunc[Req any](key func(Req) (string, error)) Option {
	return newKeyFunc("KeyFunc", key == nil, func(req Req) ([]string, error) {
		k, err := key(req)
		return []string{k}, err
	})
}

// KeysFunc is KeyFunc for several keys, which are taken all or not at all. Their order does not matter, and a key that is
// there twice counts once. No keys are ErrKey.
func KeysFunc[Req any](keys func(Req) ([]string, error)) Option {
	return newKeyFunc("KeysFunc", keys == nil, keys)
}

// keyFunc is a KeyFunc or KeysFunc, as option says, whose request type is known at run time only.
type keyFunc struct {
	option  string
	request reflect.Type
	call    func(request any) ([]string, error)
}

func newKeyFunc[Req any](option string, isNil bool, keys func(Req) ([]string, error)) Option {
	return optionFunc(func(c *config) {
		k := &keyFunc{option: option, request: reflect.TypeFor[Req]()}
		switch {
		case isNil:
			c.fault("%s without a function", option)
		case c.keyFunc != nil:
			c.fault("two sources of keys, %s and %s: give one", c.keyFunc.option, option)
		}
		k.call = func(request any) ([]string, error) {
			req, ok := request.(Req)
			if !ok && request != nil { // a nil of interface type is a Req, though it does not assert as one
				return nil, fmt.Errorf("request is a %T, not a %v", request, k.request)
			}
			return keys(req)
		}
		c.keyFunc = k
	})
}

// fits reports whether roots have the request that k wants.
func (k *keyFunc) fits(roots keyexpr.Roots) error {
	root, ok := roots[requestRoot]
	if !ok {
		return fmt.Errorf("%s takes requests of type %v, but there is no request (root %q) here: use a template", k.option, k.request, requestRoot)
	}
	if !reflect.DeepEqual(root, keyexpr.Type(k.request)) {
		return fmt.Errorf("%s takes requests of type %v, which these are not", k.option, k.request)
	}
	return nil
}

// keys returns the keys of one call, in room if there is enough: sorted, at least one, none of them empty or twice. The list of the
// function is its own, and may change.
func (k *keyFunc) keys(room []string, facts keyexpr.Facts) ([]string, error) {
	request, err := facts(requestRoot)
	if err != nil {
		return nil, err
	}
	keys, err := k.call(request)
	switch {
	case err != nil:
		return nil, err
	case len(keys) == 0:
		return nil, fmt.Errorf("%w: %s gave no keys", keyexpr.ErrValue, k.option)
	case slices.Contains(keys, ""):
		return nil, errEmptyKey
	}
	keys = append(room, keys...)
	slices.Sort(keys)
	return slices.Compact(keys), nil
}
