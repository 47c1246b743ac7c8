package connectguard

import (
	"errors"

	"connectrpc.com/connect"

	"github.com/latchkey-go/latchkey/interceptor/internal/answer"
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
func errorOf(a answer.Answer) error { return errorFor(a, errors.New(a.Message)) }

// errorFor makes the error for a that wraps reason, whose text is that of a.
func errorFor(a answer.Answer, reason error) error {
	err := connect.NewError(connect.Code(a.Code), reason)
	for _, d := range a.Details {
		if detail, marshalErr := connect.NewErrorDetail(d); marshalErr == nil {
			err.AddDetail(detail)
		}
	}
	return err
}
