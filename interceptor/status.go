package interceptor

import (
	"context"
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/interceptor/internal/answer"
)

// Status is the status for an error of a guard further in, such as that of a service whose functions are guarded: what the
// table in the package comment says for a *guard.Error, also for one that is wrapped. Any other error is returned as it is,
// a status of the handler's own also where it wraps one. The interceptors do this by themselves; it is for handlers
// without them.
func Status(err error) error {
	if err == nil {
		return nil
	}
	if e := answer.Find(err, isStatus); e != nil {
		return statusOf(answer.Of(e))
	}
	return err
}

func isStatus(err error) bool {
	_, ok := err.(interface{ GRPCStatus() *status.Status })
	return ok
}

// statusOf makes the status for a.
func statusOf(a answer.Answer) error {
	s := status.New(codes.Code(a.Code), a.Message)
	details := make([]protoadapt.MessageV1, len(a.Details))
	for i, d := range a.Details {
		details[i] = protoadapt.MessageV1Of(d)
	}
	if full, err := s.WithDetails(details...); err == nil {
		s = full
	}
	return s.Err()
}

// refusal is the error of a fact that can't be had.
type refusal struct {
	text   string
	client bool  // is to blame
	status error // what the caller gets; nil: what it gets for a bad key
}

func (r *refusal) Error() string { return r.text }

// Is makes the guard blame the client.
func (r *refusal) Is(target error) bool { return r.client && target == guard.ErrKey }

// refused is the status of a call whose handler did not run for err.
func (c *call) refused(err error) error {
	if r, ok := errors.AsType[*refusal](err); ok && r.status != nil {
		return r.status
	}
	if e, ok := errors.AsType[*guard.Error](err); ok {
		return statusOf(answer.Of(e))
	}
	return c.ended()
}

// ended is the status of a call that ended before its handler could start.
func (c *call) ended() error {
	code, what := codes.Canceled, "the call was cancelled"
	if errors.Is(c.ctx.Err(), context.DeadlineExceeded) {
		code, what = codes.DeadlineExceeded, "the deadline passed"
	}
	return status.Errorf(code, "guard %q: %s before the call had its lock", c.method.Spec.Name, what)
}
