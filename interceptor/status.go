package interceptor

import (
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"

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
