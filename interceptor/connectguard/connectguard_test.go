package connectguard_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/interceptor/connectguard"
	"github.com/latchkey-go/latchkey/lock"
)

func TestKeys(t *testing.T) {
	for protocol := range protocols {
		for _, tt := range []struct {
			key    string
			header []string
			want   string // the key, or else
			field  string // that is missing
		}{
			{key: "order:#{req.order_id}", want: "order:7"},
			{key: "order:#{req.OrderId}", want: "order:7"},
			{key: "#{method}:#{md.tenant}", header: []string{"Tenant", "acme"}, want: orderCall + ":acme"},
			{key: `t:#{md["x-tenant"]}`, header: []string{"X-Tenant", "acme"}, want: "t:acme"},
			{key: `t:#{md["tenant-bin"]}`, header: []string{"Tenant-Bin", "YQ"}, want: "t:a"},
			{key: `t:#{md["tenant-bin"]}`, header: []string{"Tenant-Bin", "YQ=="}, want: "t:a"},
			{key: `t:#{md["tenant-bin"] ?? "none"}`, header: []string{"Tenant-Bin", "?"}, field: `md["tenant-bin"] ?? "none"`},
			{key: "t:#{md.tenant}", field: "md.tenant"},
			{key: "t:#{md.tenant}", header: []string{"Tenant", "a", "Tenant", "b"}, field: "md.tenant"},
			{key: "c:#{req.customer.customer_id}", field: "customer.customer_id"},
		} {
			l := newLocker()
			client := serve(t, service{order: answering(1)}, protocol, guards(t, connectguard.Method(orderCall, newGuard(t, l, guard.Key(tt.key)))))
			_, err := client.order.CallUnary(t.Context(), order("7", tt.header...))
			if tt.want == "" {
				if got, want := failureOf(err), (failure{connect.CodeInvalidArgument, "LOCK_KEY", "", tt.field}); got != want || len(l.keys) > 0 {
					t.Errorf("%s, key %s: %v, want %v", protocol, tt.key, err, want)
				}
				continue
			}
			if err != nil || len(l.keys) != 1 || <-l.keys != tt.want {
				t.Errorf("%s, key %s: %v, want %s", protocol, tt.key, err, tt.want)
			}
		}
	}
}

func TestErrors(t *testing.T) {
	for protocol := range protocols {
		for _, tt := range []struct {
			name string
			err  error // of the locker
			want failure
		}{
			{"busy", lock.ErrBusy, failure{connect.CodeAborted, "LOCK_BUSY", "1s", ""}},
			{"outage", errors.New("dial tcp secret"), failure{connect.CodeUnavailable, "LOCK_OUTAGE", "1s", ""}},
			{"refused", fmt.Errorf("secret: %w", lock.ErrRefused), failure{connect.CodeInternal, "LOCK_FAULT", "", ""}},
			{"unsupported", lock.ErrUnsupported, failure{connect.CodeInternal, "LOCK_MISUSE", "", ""}},
		} {
			g := newGuard(t, failing(tt.err), guard.Key("secret:#{req.order_id}"))
			client := serve(t, service{order: func(context.Context, *connect.Request[request]) (*connect.Response[response], error) {
				t.Errorf("%s, %s: the handler ran", protocol, tt.name)
				return nil, nil
			}}, protocol, guards(t, connectguard.Method(orderCall, g)))
			_, err := client.order.CallUnary(t.Context(), order("7"))
			if failureOf(err) != tt.want || !strings.Contains(err.Error(), `guard "g"`) || strings.Contains(err.Error(), "secret") {
				t.Errorf("%s, %s: %v, want %v and the guard's name", protocol, tt.name, err, tt.want)
			}
		}
	}
}

// A guard of the service layer answers as one in front of the method does, with a rule and without; errors of the handler's
// own are untouched.
func TestErrorsOfHandlers(t *testing.T) {
	own := connect.NewError(connect.CodeNotFound, errors.New("no such order"))
	for protocol := range protocols {
		for _, tt := range []struct {
			err  error
			want failure
		}{
			{&guard.Error{Guard: "g", Err: guard.ErrBusy, RetryAfter: 3 * time.Second}, failure{connect.CodeAborted, "LOCK_BUSY", "3s", ""}},
			{&guard.Error{Guard: "g", Err: guard.ErrBusy, Rate: true, RetryAfter: 30 * time.Second}, failure{connect.CodeResourceExhausted, "LOCK_RATE", "30s", ""}},
			{fmt.Errorf("order: %w", &guard.Error{Guard: "g", Err: guard.ErrOutage}), failure{connect.CodeUnavailable, "LOCK_OUTAGE", "1s", ""}},
			{&guard.Error{Guard: "g", Err: guard.ErrLost, Cause: own}, failure{connect.CodeInternal, "LOCK_LOST", "", ""}},
			{own, failure{code: connect.CodeNotFound}},
			{errors.Join(own, &guard.Error{Guard: "g", Err: guard.ErrBusy}), failure{code: connect.CodeNotFound}},
			{errors.New("oops"), failure{code: connect.CodeUnknown}},
		} {
			for _, procedure := range []string{orderCall, watchCall} {
				g := newGuard(t, newLocker(), guard.Key("k"), guard.OneKey())
				client := serve(t, service{
					order: func(context.Context, *connect.Request[request]) (*connect.Response[response], error) {
						return nil, tt.err
					},
					watch: func(context.Context, *connect.Request[request], *connect.ServerStream[response]) error { return tt.err },
				}, protocol, guards(t, connectguard.Method(procedure, g)))
				_, err := client.order.CallUnary(t.Context(), order("7"))
				stream, streamErr := client.watch.CallServerStream(t.Context(), order("7"))
				if streamErr != nil {
					t.Fatal(streamErr)
				}
				stream.Receive()
				for _, err := range []error{err, stream.Err()} {
					if failureOf(err) != tt.want {
						t.Errorf("%s: handler returns %v, the client gets %v, want %v", protocol, tt.err, err, tt.want)
					}
				}
			}
		}
	}
	if connectguard.Error(nil) != nil {
		t.Error("Error(nil) is an error")
	}
}

func TestExclusion(t *testing.T) {
	count := 0 // the lock is all that protects it
	client := serve(t, service{order: func(context.Context, *connect.Request[request]) (*connect.Response[response], error) {
		seen := count
		runtime.Gosched()
		count = seen + 1
		return connect.NewResponse(&response{}), nil
	}}, "connect", guards(t, connectguard.FromOptions(newLocker())))
	var calls sync.WaitGroup
	for range 50 {
		calls.Go(func() {
			if _, err := client.order.CallUnary(t.Context(), order("7")); err != nil {
				t.Error(err)
			}
		})
	}
	calls.Wait()
	if count != 50 {
		t.Errorf("count = %d after 50 calls", count)
	}
}

// A call that is skipped succeeds with an empty response and says so.
func TestSkippedCalls(t *testing.T) {
	for protocol := range protocols {
		g := newGuard(t, failing(lock.ErrBusy), guard.Key("k"), guard.OneKey(), guard.Busy(guard.Skip))
		client := serve(t, service{order: answering(7)}, protocol, guards(t, connectguard.Service("latchkey.test.shop.v1.Shop", g)))
		res, err := client.order.CallUnary(t.Context(), order("7"))
		if err != nil || res.Msg.GetOrders() != 0 || res.Header().Get("Latchkey-Outcome") != "skipped" {
			t.Errorf("%s: Order = %v, %v, want an empty response that says so", protocol, res, err)
		}
		fill := client.fill.CallClientStream(t.Context())
		if res, err = fill.CloseAndReceive(); err != nil || res.Header().Get("Latchkey-Outcome") != "skipped" {
			t.Errorf("%s: Fill = %v, %v, want an empty response that says so", protocol, res, err)
		}
		watch, err := client.watch.CallServerStream(t.Context(), order("7"))
		if err != nil {
			t.Fatal(err)
		}
		if watch.Receive() || watch.Err() != nil || watch.ResponseHeader().Get("Latchkey-Outcome") != "skipped" {
			t.Errorf("%s: Watch = %v, %v, want no message", protocol, watch.Msg(), watch.Err())
		}
	}
}

func TestDeadlineWhileWaiting(t *testing.T) {
	l := newLocker()
	hold, err := l.Locker.Acquire(t.Context(), lock.Request{Key: "k"})
	if err != nil {
		t.Fatal(err)
	}
	client := serve(t, service{order: answering(1)}, "connect",
		guards(t, connectguard.Method(orderCall, newGuard(t, l, guard.Key("k"), guard.OneKey(), guard.Wait(guard.Forever)))))
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := client.order.CallUnary(ctx, order("7")); failureOf(err).code != connect.CodeDeadlineExceeded {
		t.Errorf("= %v, want DeadlineExceeded", err)
	}
	if err := hold.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

// Clients that share the interceptor are not guarded, and methods without a rule pass.
func TestClientsPass(t *testing.T) {
	l := newLocker()
	g := guards(t, connectguard.Method(watchCall, newGuard(t, l, guard.Key("k"), guard.OneKey())))
	protocols["shared"] = []connect.ClientOption{connect.WithInterceptors(guards(t, connectguard.Method(orderCall, newGuard(t, l, guard.Key("k"), guard.OneKey()))))}
	defer delete(protocols, "shared")
	client := serve(t, service{order: answering(7)}, "shared", g)
	res, err := client.order.CallUnary(t.Context(), order("7"))
	if err != nil || res.Msg.GetOrders() != 7 || len(l.keys) > 0 {
		t.Errorf("= %v, %v after %d locks, want the handler's answer and none", res, err, len(l.keys))
	}
}

func TestStartUpMistakes(t *testing.T) {
	g := newGuard(t, newLocker(), guard.Key("order:#{req.order_id}"))
	for _, tt := range []struct {
		rules []connectguard.Rule
		want  string
	}{
		{nil, "connectguard: no rules"},
		{[]connectguard.Rule{{}}, "without a guard"},
		{[]connectguard.Rule{connectguard.Method(orderCall+"s", g)}, "did you mean " + fmt.Sprintf("%q", orderCall)},
		{[]connectguard.Rule{connectguard.Service("shop.v1.Shop", g)}, `did you mean "latchkey.test.shop.v1.Shop"`},
		{[]connectguard.Rule{connectguard.Match("/latchkey.test.shop.v2.*/*", g)}, "no registered method matches"},
		{[]connectguard.Rule{connectguard.Method(orderCall, g), connectguard.Unguarded(orderCall)}, "another rule"},
		{[]connectguard.Rule{connectguard.Method(orderCall, newGuard(t, newLocker(), guard.Key("order:#{req.order}")))}, "OrderId"},
		{[]connectguard.Rule{connectguard.FromOptions(nil)}, "nil locker"},
	} {
		guards, err := connectguard.New(tt.rules...)
		if err == nil || guards != nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("error %v does not say %s", err, tt.want)
		}
	}
	var names []string
	for name := range guards(t, connectguard.FromOptions(newLocker())).All() {
		names = append(names, name)
	}
	if got, want := strings.Join(names, " "), fillCall+" "+orderCall+" "+watchCall; got != want {
		t.Errorf("guarded are %s, want %s", got, want)
	}
}
