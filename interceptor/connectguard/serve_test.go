package connectguard_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/interceptor/connectguard"
	"github.com/latchkey-go/latchkey/interceptor/internal/shoppb"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/memlock"
)

const (
	orderCall = shoppb.Shop_Order_FullMethodName
	watchCall = shoppb.Shop_Watch_FullMethodName
	fillCall  = shoppb.Shop_Fill_FullMethodName
	listCall  = shoppb.Shop_List_FullMethodName
)

type (
	request  = shoppb.OrderRequest
	response = shoppb.OrderResponse
)

// service is a server whose methods are written by each test.
type service struct {
	order func(context.Context, *connect.Request[request]) (*connect.Response[response], error)
	watch func(context.Context, *connect.Request[request], *connect.ServerStream[response]) error
	fill  func(context.Context, *connect.ClientStream[request]) (*connect.Response[response], error)
}

// shop is a client of all methods.
type shop struct {
	order, watch, fill *connect.Client[request, response]
}

// protocols are what servers speak: the same answers come by each of them.
var protocols = map[string][]connect.ClientOption{
	"connect": nil, "connect+json": {connect.WithProtoJSON()}, "grpc": {connect.WithGRPC()}, "grpc-web": {connect.WithGRPCWeb()},
}

// serve starts s on a port of its own and returns a client that speaks one of the protocols.
func serve(t testing.TB, s service, protocol string, interceptors ...connect.Interceptor) shop {
	t.Helper()
	with := connect.WithInterceptors(interceptors...)
	mux := http.NewServeMux()
	mux.Handle(orderCall, connect.NewUnaryHandler(orderCall, s.order, with))
	mux.Handle(listCall, connect.NewUnaryHandler(listCall, s.order, with))
	mux.Handle(watchCall, connect.NewServerStreamHandler(watchCall, s.watch, with))
	mux.Handle(fillCall, connect.NewClientStreamHandler(fillCall, s.fill, with))
	server := httptest.NewUnstartedServer(mux)
	server.Config.Protocols = new(http.Protocols)
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	server.Start()
	transport := &http.Transport{Protocols: server.Config.Protocols}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		server.Close()
	})
	client := func(procedure string) *connect.Client[request, response] {
		return connect.NewClient[request, response](&http.Client{Transport: transport}, server.URL+procedure, protocols[protocol]...)
	}
	return shop{client(orderCall), client(watchCall), client(fillCall)}
}

// newGuard declares a guard of name "g".
func newGuard(t testing.TB, l lock.Locker, opts ...guard.Option) *guard.Guard {
	t.Helper()
	g, err := guard.New(l, append([]guard.Option{guard.Name("g")}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func guards(t testing.TB, rules ...connectguard.Rule) *connectguard.Guards {
	t.Helper()
	g, err := connectguard.New(rules...)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// order is a request for the order of this id.
func order(id string, header ...string) *connect.Request[request] {
	r := connect.NewRequest(&request{OrderId: id})
	for i := 0; i < len(header); i += 2 {
		r.Header().Add(header[i], header[i+1])
	}
	return r
}

func answering(n int64) func(context.Context, *connect.Request[request]) (*connect.Response[response], error) {
	return func(context.Context, *connect.Request[request]) (*connect.Response[response], error) {
		return connect.NewResponse(&response{Orders: n}), nil
	}
}

// lockerFunc is a Locker that is a function.
type lockerFunc func(context.Context, lock.Request) (lock.Hold, error)

func (f lockerFunc) Acquire(ctx context.Context, r lock.Request) (lock.Hold, error) { return f(ctx, r) }

// failing is a Locker that always fails.
func failing(err error) lockerFunc {
	return func(context.Context, lock.Request) (lock.Hold, error) { return nil, err }
}

// locker is a memlock.Locker that tells which keys it is asked for.
type locker struct {
	*memlock.Locker
	keys chan string
}

func newLocker() locker { return locker{memlock.New(), make(chan string, 1000)} }

func (l locker) Acquire(ctx context.Context, r lock.Request) (lock.Hold, error) {
	l.keys <- r.Key
	return l.Locker.Acquire(ctx, r)
}

// failure is what a client sees of an error.
type failure struct {
	code   connect.Code
	reason string // of ErrorInfo
	delay  string // of RetryInfo
	field  string // of BadRequest
}

func failureOf(err error) failure {
	e, ok := errors.AsType[*connect.Error](err)
	if !ok {
		return failure{}
	}
	f := failure{code: e.Code()}
	for _, d := range e.Details() {
		value, err := d.Value()
		if err != nil {
			f.reason = err.Error()
		}
		switch d := value.(type) {
		case *errdetails.ErrorInfo:
			f.reason = d.GetReason()
		case *errdetails.RetryInfo:
			f.delay = d.GetRetryDelay().AsDuration().String()
		case *errdetails.BadRequest:
			f.field = d.GetFieldViolations()[0].GetField()
		}
	}
	return f
}
