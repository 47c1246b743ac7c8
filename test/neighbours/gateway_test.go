package neighbours

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/interceptor"
	pb "github.com/latchkey-go/latchkey/test/neighbours/neighbourpb"
)

// orders is a service of grpc-go.
type orders struct {
	pb.UnimplementedOrdersServer
	method method
	run    *meeting
}

func (o *orders) fail(err error) error {
	if f, ok := err.(*failure); ok {
		return status.Error(codes.Code(f.status), f.text)
	}
	return err
}

func (o *orders) Settle(ctx context.Context, _ *pb.Order) (*pb.Receipt, error) {
	_ = grpc.SetHeader(ctx, metadata.Pairs("shop", "acme"))
	out := new(pb.Receipt)
	return out, o.fail(o.method.begin(ctx, o.run, func(text string) error { out.Text = text; return nil }))
}

func (o *orders) Watch(_ *pb.Order, out pb.Orders_WatchServer) error {
	return o.fail(o.method.begin(out.Context(), o.run, func(text string) error { return out.Send(&pb.Receipt{Text: text}) }))
}

// callGateway has a gateway, in front of a server or in place of one, and calls it over HTTP.
func callGateway(inProcess bool) caller {
	return func(t *testing.T, ctx context.Context, m method, run *meeting, g *guard.Guard, tenant string) reply {
		if inProcess && (m.stream || m.outcome == "panic") { // it has no streams, and net/http recovers
			return reply{}
		}
		mux := runtime.NewServeMux(runtime.WithIncomingHeaderMatcher(func(name string) (string, bool) { return name, name == "Tenant" }))
		life, end := context.WithCancel(context.Background())
		defer end()
		o := &orders{method: m, run: run}
		var err error
		if inProcess {
			err = pb.RegisterOrdersHandlerServer(life, mux, o)
		} else {
			address, stop := serveOrders(t, o, g)
			defer stop()
			err = pb.RegisterOrdersHandlerFromEndpoint(life, mux, address, []grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials())})
		}
		if err != nil {
			t.Fatal(err)
		}
		web := httptest.NewServer(mux)
		defer web.Close()
		path := pb.Orders_Settle_FullMethodName
		if m.stream {
			path = pb.Orders_Watch_FullMethodName
		}
		return request(t, ctx, web.URL+path, tenant)
	}
}

// serveOrders starts a server of grpc-go.
func serveOrders(t *testing.T, o *orders, g *guard.Guard) (address string, stop func()) {
	t.Helper()
	recovers := func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (res any, err error) {
		defer func() {
			if recover() != nil {
				err = status.Error(codes.Unknown, errPlain.Error())
			}
		}()
		return next(ctx, req)
	}
	options := []grpc.ServerOption{grpc.ChainUnaryInterceptor(recovers), grpc.WaitForHandlers(true)}
	if g != nil {
		options = append(options, guard.Must(interceptor.New(interceptor.Service(pb.Orders_ServiceDesc.ServiceName, g))).ServerOptions()...)
	}
	server := grpc.NewServer(options...)
	pb.RegisterOrdersServer(server, o)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = server.Serve(listener) }()
	return listener.Addr().String(), server.Stop
}

// request calls a gateway.
func request(t *testing.T, ctx context.Context, url, tenant string) (r reply) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(`{"id":"7"}`))
	if err != nil {
		t.Fatal(err)
	}
	if tenant != "" {
		req.Header.Set("Tenant", tenant)
	}
	transport := new(http.Transport)
	defer transport.CloseIdleConnections()
	res, err := transport.RoundTrip(req)
	if err != nil {
		r.text = classify(ctx, err, "no answer")
		return r
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		r.text = classify(ctx, err, "broken")
		return r
	}
	r.headers = res.Header.Get("Grpc-Metadata-Shop")
	for d := json.NewDecoder(bytes.NewReader(data)); d.More(); {
		var m answered
		if err := d.Decode(&m); err != nil {
			r.text = err.Error()
			return r
		}
		r.take(m, res.StatusCode)
	}
	return r
}

// refused is an error of a gateway's.
type refused struct {
	Code    int
	Message string
	Details []struct {
		Type   string `json:"@type"`
		Reason string
	}
}

// answered is a message of a gateway's: an error, a receipt, or one of either in a stream.
type answered struct {
	refused
	Text   string
	Result struct{ Text string }
	Error  *refused
}

// take notes a message that came with a status of HTTP.
func (r *reply) take(m answered, got int) {
	f := m.Error
	if f == nil && got != http.StatusOK {
		f = &m.refused
	}
	if f == nil {
		r.messages = append(r.messages, m.Text+m.Result.Text)
		return
	}
	r.code, r.text = codes.Code(f.Code), f.Message
	for _, d := range f.Details {
		r.reason = cmp.Or(r.reason, d.Reason)
		r.retry = r.retry || strings.HasSuffix(d.Type, "RetryInfo")
	}
	if want := runtime.HTTPStatusFromCode(r.code); got != want && got != http.StatusOK {
		r.text += fmt.Sprintf(" (status %d, want %d)", got, want)
	}
}
