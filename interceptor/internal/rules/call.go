package rules

import (
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/keyexpr"
)

// Call is one call of a method: what its guard may ask, and how it ends.
type Call struct {
	Method    *Bound
	Context   context.Context
	Request   any    // of a unary method
	Stream    Stream // of a streaming method, and nil for a unary one
	Transport Transport

	fell bool // the fallback ran
}

// Stream is a call of a streaming method.
type Stream interface {
	// Peek returns the first message, which the handler gets nevertheless. Its error is that of the call's context where the
	// caller has gone.
	Peek() (any, error)
}

// Transport is the part that gRPC and Connect do in ways of their own.
type Transport interface {
	// Metadata returns the values that the caller has sent under a name, binary ones as they were before they were encoded.
	Metadata(ctx context.Context, name string) ([]string, error)
	// Answer is the answer for an error of a guard, also for one that is wrapped. Other errors it returns as they are.
	Answer(err error) error
	// Misuse is the answer for a rule that does not fit what the server does.
	Misuse(m *Bound, text string) error
	// Ended is the answer for a call whose context ended, in time or because it was too late.
	Ended(late bool, text string) error
}

// Run makes the call under its guard, with instead in place of the handler where the method has a Fallback. It reports
// whether the call was skipped. Its error is either the handler's own, untouched, or an answer of the transport.
func (c *Call) Run(handle func(context.Context) error, instead func(ctx context.Context, refused error) error) (skipped bool, err error) {
	if c.Stream != nil && c.Method.Fallback != nil { // of a method that nobody knew to be one
		return false, c.Transport.Misuse(c.Method, "its Fallback is for unary methods, and this one streams")
	}
	ran, err := c.run(handle, instead)
	switch {
	case ran || c.fell:
		return false, c.Transport.Answer(err)
	case err != nil:
		return false, c.refused(err)
	}
	return true, nil
}

func (c *Call) run(handle func(context.Context) error, instead func(context.Context, error) error) (ran bool, err error) {
	if c.Method.Fallback == nil {
		return c.Method.Runner.Run(c.Context, c.fact, handle)
	}
	return c.Method.Runner.RunOr(c.Context, c.fact, handle, func(ctx context.Context, refused error) error {
		c.fell = true
		return instead(ctx, refused)
	})
}

// fact is the keyexpr.Facts of the call.
func (c *Call) fact(root string) (any, error) {
	switch root {
	case "req":
		return c.request()
	case "method":
		return c.Method.Name, nil
	default:
		return keyexpr.Lookup(c.metadata), nil
	}
}

// request returns the request, which has to be of the type that the template was checked against.
func (c *Call) request() (req any, err error) {
	if req = c.Request; c.Stream != nil {
		req, err = c.Stream.Peek()
	}
	switch {
	case errors.Is(err, io.EOF):
		return nil, &refusal{text: "the call has no request message", client: true}
	case err != nil && c.Context.Err() != nil && errors.Is(err, c.Context.Err()):
		return nil, err // as if the caller had gone while the guard waited for the lock
	case err != nil:
		return nil, &refusal{text: "the request can't be received", client: true, answer: err}
	case reflect.TypeOf(req) != c.Method.Request:
		const text = "the request is not of the type that its rule was made for"
		return nil, &refusal{text: text, answer: c.Transport.Misuse(c.Method, text)}
	}
	return req, nil
}

// metadata is the keyexpr.Lookup of md.
func (c *Call) metadata(name string) (string, bool, error) {
	values, err := c.Transport.Metadata(c.Context, name)
	switch {
	case err != nil:
		return "", false, &refusal{text: "metadata that can't be decoded", client: true}
	case len(values) == 0:
		return "", false, nil
	case len(values) == 1:
		return values[0], true, nil
	}
	return "", false, &refusal{text: "metadata that was sent more than once", client: true}
}

// refusal is the error of a fact that is unavailable.
type refusal struct {
	text   string
	client bool  // is to blame
	answer error // what the caller gets; nil: what it gets for a bad key
}

func (r *refusal) Error() string { return r.text }

// Is makes the guard blame the client.
func (r *refusal) Is(target error) bool { return r.client && target == guard.ErrKey }

// refused is the answer for a call whose handler did not run for err.
func (c *Call) refused(err error) error {
	if r, ok := errors.AsType[*refusal](err); ok && r.answer != nil {
		return r.answer
	}
	if e, ok := errors.AsType[*guard.Error](err); ok {
		return c.Transport.Answer(e)
	}
	late, what := errors.Is(c.Context.Err(), context.DeadlineExceeded), "the call was cancelled"
	if late {
		what = "the deadline passed"
	}
	return c.Transport.Ended(late, fmt.Sprintf("guard %q: %s before the call had its lock", c.Method.Spec.Name, what))
}
