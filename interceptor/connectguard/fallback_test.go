package connectguard_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"connectrpc.com/connect"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/interceptor/connectguard"
	"github.com/latchkey-go/latchkey/lock"
)

type fallback = func(context.Context, *connect.Request[request], error) (*connect.Response[response], error)

// A fallback answers instead of the handler, over each protocol, and its errors are treated as the handler's are.
func TestFallback(t *testing.T) {
	for protocol := range protocols {
		for _, tt := range []struct {
			name     string
			l        lock.Locker
			fallback fallback
			want     int64
			fail     failure
		}{
			{"not needed", newLocker(), fall, 1, failure{}},
			{"busy", failing(lock.ErrBusy), func(ctx context.Context, r *connect.Request[request], refused error) (*connect.Response[response], error) {
				return fall(ctx, connect.NewRequest(&request{OrderId: r.Msg.GetOrderId()}), refused)
			}, fallen, failure{}},
			{"outage", failing(errors.New("down")), fall, fallen, failure{}},
			{"no policy for a refusal", failing(lock.ErrRefused), fall, 0, failure{connect.CodeInternal, "LOCK_FAULT", "", ""}},
			{"gives up", failing(lock.ErrBusy), func(_ context.Context, _ *connect.Request[request], refused error) (*connect.Response[response], error) {
				return nil, fmt.Errorf("no cache: %w", refused)
			}, 0, failure{connect.CodeAborted, "LOCK_BUSY", "1s", ""}},
			{"fails", failing(lock.ErrBusy), func(context.Context, *connect.Request[request], error) (*connect.Response[response], error) {
				return nil, connect.NewError(connect.CodeNotFound, errors.New("no cache"))
			}, 0, failure{code: connect.CodeNotFound}},
			{"gives nothing", failing(lock.ErrBusy), func(context.Context, *connect.Request[request], error) (*connect.Response[response], error) {
				return nil, nil
			}, 0, failure{code: connect.CodeInternal}},
		} {
			g := newGuard(t, tt.l, guard.Key("order:#{req.order_id}"))
			client := serve(t, service{order: answering(1)}, protocol, guards(t, connectguard.Method(orderCall, g, connectguard.Fallback(tt.fallback))))
			res, err := client.order.CallUnary(t.Context(), order("7"))
			if failureOf(err) != tt.fail || tt.name == "gives nothing" && !strings.Contains(err.Error(), "neither a response nor an error") {
				t.Errorf("%s, %s: %v, want %v", protocol, tt.name, err, tt.fail)
			}
			if err == nil && (res.Msg.GetOrders() != tt.want || res.Header().Get("Latchkey-Outcome") != "") {
				t.Errorf("%s, %s: %v %v, want %d orders", protocol, tt.name, res.Msg, res.Header(), tt.want)
			}
		}
	}
}

func TestFallbackMistakes(t *testing.T) {
	g := newGuard(t, newLocker(), guard.Key("k"), guard.OneKey())
	skip := newGuard(t, newLocker(), guard.Key("k"), guard.OneKey(), guard.Busy(guard.Skip), guard.Outage(guard.Fail))
	ok := connectguard.Fallback(fall)
	for _, tt := range []struct {
		rule connectguard.Rule
		want string
	}{
		{connectguard.Method(orderCall, g, connectguard.Fallback[request, response](nil)), "Fallback without a function"},
		{connectguard.Method(orderCall, g, ok, ok), "given twice"},
		{connectguard.Method(orderCall, g, nil), "option 1 of 1 is nil"},
		{connectguard.Method(watchCall, g, ok), "unary"},
		{connectguard.Method(orderCall, skip, ok), "never runs"},
		{connectguard.Method(orderCall, newGuard(t, newLocker(), guard.Key("k"), guard.OneKey(), guard.Busy(guard.RunFallback))), "fallback"},
		{connectguard.Method(orderCall, g, connectguard.Fallback(
			func(context.Context, *connect.Request[response], error) (*connect.Response[response], error) {
				return nil, nil
			})), "takes a *shoppb.OrderResponse"},
		{connectguard.Method(orderCall, g, connectguard.Fallback(
			func(context.Context, *connect.Request[request], error) (*connect.Response[request], error) {
				return nil, nil
			})), "returns a *shoppb.OrderRequest"},
	} {
		if _, err := connectguard.New(tt.rule); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("error %v does not say %s", err, tt.want)
		}
	}
}
