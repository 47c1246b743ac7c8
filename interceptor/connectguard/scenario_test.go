package connectguard_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/interceptor/connectguard"
	"github.com/latchkey-go/latchkey/internal/scenario"
	"github.com/latchkey-go/latchkey/lock"
)

// TestScenarios plays the one table with a unary method of Connect. Client and handler meet without the sockets that a
// bubble can't wait for.
func TestScenarios(t *testing.T) {
	scenario.Run(t, scenario.Driver{Fact: "req.OrderId", Mount: mountUnary(), Fallback: mountUnary(connectguard.Fallback(fall)), Client: true})
}

// fall is a fallback that wants to know why it runs.
func fall(_ context.Context, r *connect.Request[request], refused error) (*connect.Response[response], error) {
	if e, ok := errors.AsType[*guard.Error](refused); !ok || r.Msg.GetOrderId() != "7" {
		return nil, fmt.Errorf("fallback for %v: %v", r.Msg, e)
	}
	return connect.NewResponse(&response{Orders: fallen}), nil
}

// fallen is how many orders the fallback says there are.
const fallen = 99

// direct is an HTTP client that calls its handler.
type direct struct{ http.Handler }

func (d direct) Do(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	d.ServeHTTP(w, r)
	return w.Result(), nil
}

func mountUnary(opts ...connectguard.Option) scenario.Mount {
	return func(t *testing.T, l lock.Locker, guardOpts []guard.Option, work scenario.Work) scenario.Call {
		g, err := guard.New(l, guardOpts...)
		if err != nil {
			t.Fatal(err)
		}
		handler := connect.NewUnaryHandler(orderCall, func(ctx context.Context, _ *connect.Request[request]) (*connect.Response[response], error) {
			return connect.NewResponse(&response{Orders: 1}), work(ctx)
		}, connect.WithInterceptors(guards(t, connectguard.Method(orderCall, g, opts...))))
		client := connect.NewClient[request, response](direct{handler}, "http://shop"+orderCall)
		return func(ctx context.Context, id string) scenario.Class {
			res, err := client.CallUnary(ctx, order(id))
			switch {
			case err != nil:
				return classOf(err)
			case res.Msg.GetOrders() == fallen:
				return scenario.Fell
			case res.Msg.GetOrders() == 0:
				return scenario.Skipped
			}
			return scenario.Done
		}
	}
}

// classOf says what a client makes of an error.
func classOf(err error) scenario.Class {
	e, ok := errors.AsType[*connect.Error](err)
	if !ok {
		return scenario.Unknown
	}
	if e.Code() == connect.CodeUnknown && e.Message() == scenario.ErrOwn.Error() {
		return scenario.Failed
	}
	var reason string
	for _, d := range e.Details() {
		if v, err := d.Value(); err == nil {
			if info, ok := v.(*errdetails.ErrorInfo); ok {
				reason = info.GetReason()
			}
		}
	}
	class, ok := map[coded]scenario.Class{
		{connect.CodeInvalidArgument, "LOCK_KEY"}: scenario.BadKey,
		{connect.CodeAborted, "LOCK_BUSY"}:        scenario.Busy,
		{connect.CodeUnavailable, "LOCK_OUTAGE"}:  scenario.Unavailable,
		{connect.CodeInternal, "LOCK_FAULT"}:      scenario.Broken,
		{connect.CodeInternal, "LOCK_MISUSE"}:     scenario.Broken,
		{connect.CodeInternal, "LOCK_LOST"}:       scenario.Lost,
		{connect.CodeAborted, "LOCK_REPLACED"}:    scenario.Replaced,
		{connect.CodeDeadlineExceeded, ""}:        scenario.Late,
		{connect.CodeCanceled, ""}:                scenario.Gone,
	}[coded{e.Code(), reason}]
	if !ok {
		return scenario.Unknown
	}
	return class
}

// coded is a code with the reason in its details.
type coded struct {
	code   connect.Code
	reason string
}
