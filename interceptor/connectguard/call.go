package connectguard

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/interceptor/internal/answer"
	"github.com/latchkey-go/latchkey/interceptor/internal/rules"
)

// outcomeHeader marks an answer that is not the handler's.
const outcomeHeader = "Latchkey-Outcome"

// transport is Connect, with the headers of a request.
type transport http.Header

// Metadata decodes binary headers, which have several spellings of one value. gRPC's servers do that themselves.
func (t transport) Metadata(_ context.Context, name string) ([]string, error) {
	values := http.Header(t).Values(name)
	if !strings.HasSuffix(strings.ToLower(name), "-bin") {
		return values, nil
	}
	var decoded []string
	for _, v := range values {
		data, err := connect.DecodeBinaryHeader(v)
		if err != nil {
			return nil, err
		}
		decoded = append(decoded, string(data))
	}
	return decoded, nil
}

func (transport) Answer(err error) error { return Error(err) }

func (transport) Misuse(m *rules.Bound, text string) error {
	return errorOf(answer.New(answer.Misuse, m.Spec.Name, text, 0))
}

func (transport) Ended(late bool, text string) error {
	if late {
		return connect.NewError(connect.CodeDeadlineExceeded, errors.New(text))
	}
	return connect.NewError(connect.CodeCanceled, errors.New(text))
}

// unary makes a call of a unary method.
func unary(ctx context.Context, m *rules.Bound, req connect.AnyRequest, next connect.UnaryFunc) (connect.AnyResponse, error) {
	var res connect.AnyResponse
	c := rules.Call{Method: m, Context: ctx, Request: req.Any(), Transport: transport(req.Header())}
	skipped, err := c.Run(func(ctx context.Context) (err error) {
		res, err = next(ctx, req)
		return err
	}, func(ctx context.Context, refused error) error {
		answer, err := m.Fallback.Run(ctx, req, refused)
		res, _ = answer.(connect.AnyResponse) // as Fallback has made it
		return err
	})
	if skipped {
		empty := connect.NewResponse(&response{m.Response.New().Interface()})
		empty.Header().Set(outcomeHeader, guard.OutcomeSkipped)
		return empty, nil
	}
	return res, err
}

// response is a message of a type that is known at run time only.
type response struct{ proto.Message }
