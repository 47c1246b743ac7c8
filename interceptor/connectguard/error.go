package connectguard

import (
	"context"
	"errors"
	"fmt"

	"connectrpc.com/connect"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/interceptor/internal/answer"
	"github.com/latchkey-go/latchkey/interceptor/internal/rules"
)

// Error is the *connect.Error for an error of a guard further in, such as that of a service whose functions are guarded, also
// for one that is wrapped. Any other error is returned as it is, a *connect.Error of the handler's own also where it wraps
// one. Guards do this by themselves; it is for handlers without them.
func Error(err error) error {
	if err == nil {
		return nil
	}
	if e := answer.Find(err, isConnect); e != nil {
		return errorOf(answer.Of(e))
	}
	return err
}

func isConnect(err error) bool {
	_, ok := err.(*connect.Error) //nolint:errorlint // its caller looks at what err wraps
	return ok
}

// errorOf makes the error for a.
func errorOf(a answer.Answer) error {
	err := connect.NewError(connect.Code(a.Code), errors.New(a.Message))
	for _, d := range a.Details {
		if detail, marshalErr := connect.NewErrorDetail(d); marshalErr == nil {
			err.AddDetail(detail)
		}
	}
	return err
}

func misuse(m *rules.Bound, text string) error {
	return errorOf(answer.New(answer.Misuse, m.Spec.Name, text, 0))
}

// refusal is the error of a fact that can't be had.
type refusal struct {
	text   string
	client bool  // is to blame
	answer error // what the caller gets; nil: what it gets for a bad key
}

func (r *refusal) Error() string { return r.text }

// Is makes the guard blame the client.
func (r *refusal) Is(target error) bool { return r.client && target == guard.ErrKey }

// refused is the error of a call whose handler did not run for err.
func (c *call) refused(err error) error {
	if r, ok := errors.AsType[*refusal](err); ok && r.answer != nil {
		return r.answer
	}
	if e, ok := errors.AsType[*guard.Error](err); ok {
		return errorOf(answer.Of(e))
	}
	code, what := connect.CodeCanceled, "the call was cancelled"
	if errors.Is(c.ctx.Err(), context.DeadlineExceeded) {
		code, what = connect.CodeDeadlineExceeded, "the deadline passed"
	}
	return connect.NewError(code, fmt.Errorf("guard %q: %s before the call had its lock", c.method.Spec.Name, what))
}
