package interceptor

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/latchkey-go/latchkey/interceptor/internal/answer"
	"github.com/latchkey-go/latchkey/interceptor/internal/rules"
)

// transport is gRPC.
type transport struct{}

func (transport) Metadata(ctx context.Context, name string) ([]string, error) {
	return metadata.ValueFromIncomingContext(ctx, name), nil
}

func (transport) Answer(err error) error { return Status(err) }

func (transport) Misuse(m *rules.Bound, text string) error {
	return statusOf(answer.New(answer.Misuse, m.Spec.Name, text, 0))
}

func (transport) Ended(late bool, text string) error {
	if late {
		return status.Error(codes.DeadlineExceeded, text)
	}
	return status.Error(codes.Canceled, text)
}

// unary makes a call of a unary method.
func unary(ctx context.Context, m *rules.Bound, req any, next grpc.UnaryHandler) (any, error) {
	var res any
	var instead func(context.Context, error) error
	if m.Fallback != nil {
		instead = func(ctx context.Context, refused error) (err error) {
			res, err = m.Fallback.Run(ctx, req, refused)
			return err
		}
	}
	c := rules.Call{Method: m, Context: ctx, Request: req, Transport: transport{}}
	skip, err := c.Run(func(ctx context.Context) (err error) {
		res, err = next(ctx, req)
		return err
	}, instead)
	if skip {
		return skipped(ctx, m), nil
	}
	return res, err
}

// skipped is the answer to a call that was skipped.
func skipped(ctx context.Context, m *rules.Bound) any {
	_ = grpc.SetHeader(ctx, skippedHeader) // fails only for a caller within the process
	return m.Response.New().Interface()
}

// skippedHeader marks an answer that is not the handler's.
var skippedHeader = metadata.Pairs("latchkey-outcome", "skipped")
