package interceptor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/latchkey-go/latchkey/guard"
)

// domain is the domain of each ErrorInfo.
const domain = "latchkey"

// retryLater is the RetryInfo of a call that may be repeated when nobody knows when.
const retryLater = time.Second

// answer is a way in which a guard ends a call.
type answer struct {
	code   codes.Code
	reason string // in ErrorInfo
	retry  bool   // whether repeating the call can help
}

var (
	badKey = answer{codes.InvalidArgument, "LOCK_KEY", false}
	busy   = answer{codes.Aborted, "LOCK_BUSY", true}
	outage = answer{codes.Unavailable, "LOCK_OUTAGE", true}
	lost   = answer{codes.Internal, "LOCK_LOST", false}
	misuse = answer{codes.Internal, "LOCK_MISUSE", false}
)

// status is what the caller gets to know of an error that is the guard's own, or of the end of ctx.
func (m *method) status(ctx context.Context, err error) error {
	// The guard's errors come first: through their causes they can match those of a context too.
	e, ok := errors.AsType[*guard.Error](err)
	if !ok {
		return m.ended(ctx)
	}
	switch {
	case errors.Is(e.Err, guard.ErrKey):
		return m.answer(badKey, "the request gives no key", 0)
	case errors.Is(e.Err, guard.ErrBusy):
		return m.answer(busy, "its lock is held by others", e.RetryAfter)
	case errors.Is(e.Err, guard.ErrOutage):
		return m.answer(outage, "the lock service did not answer", e.RetryAfter)
	case errors.Is(e.Err, guard.ErrLost):
		return m.lost()
	default:
		return m.answer(misuse, "the lock service can't do what it declares", 0)
	}
}

// ended is the status of a call that ended before its handler could start.
func (m *method) ended(ctx context.Context) error {
	switch err := ctx.Err(); {
	case errors.Is(err, context.DeadlineExceeded):
		return status.Errorf(codes.DeadlineExceeded, "guard %q: the deadline passed before the call had its lock", m.guard)
	case err != nil:
		return status.Errorf(codes.Canceled, "guard %q: the call was cancelled before it had its lock", m.guard)
	default:
		return m.answer(misuse, "it could not run", 0)
	}
}

func (m *method) lost() error {
	return m.answer(lost, "its lock was lost while the call was handled", 0)
}

// answer makes the status for a. Its text is for people, and neither it nor the details hold anything that the lock
// service said.
func (m *method) answer(a answer, text string, retryAfter time.Duration) error {
	s := status.New(a.code, fmt.Sprintf("guard %q: %s", m.guard, text))
	details := []protoadapt.MessageV1{
		&errdetails.ErrorInfo{Reason: a.reason, Domain: domain, Metadata: map[string]string{"guard": m.guard}},
	}
	if a.retry {
		delay := durationpb.New(cmp.Or(retryAfter, retryLater))
		details = append(details, &errdetails.RetryInfo{RetryDelay: delay})
	}
	if full, err := s.WithDetails(details...); err == nil {
		s = full
	}
	return s.Err()
}
