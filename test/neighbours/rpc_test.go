package neighbours

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/guard/guardtest"
	"github.com/latchkey-go/latchkey/interceptor"
	"github.com/latchkey-go/latchkey/interceptor/connectguard"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/memlock"
	pb "github.com/latchkey-go/latchkey/test/neighbours/neighbourpb"
)

// method is what a service does. A unary method sends once.
type method struct {
	name    string
	stream  bool
	do      func(ctx context.Context, m *meeting, send func(text string) error) error
	outcome string // ok if empty
	hangs   bool   // until the client gives up
}

// meeting is one call's play, between the service and the test.
type meeting struct {
	begun  chan struct{}
	losing func()
	runs   int
}

func (m *meeting) lose() {
	if m.losing != nil {
		m.losing()
	}
}

var methods = []method{
	{name: "small", do: func(_ context.Context, m *meeting, send func(string) error) error { m.lose(); return send("settled") }},
	{name: "large", do: func(_ context.Context, m *meeting, send func(string) error) error {
		m.lose()
		return send(strings.Repeat("all work and no play ", 2000))
	}},
	{name: "refuses", outcome: "error", do: func(_ context.Context, m *meeting, _ func(string) error) error {
		m.lose()
		return &failure{int(codes.FailedPrecondition), "no such order"}
	}},
	{name: "fails", outcome: "error", do: func(_ context.Context, m *meeting, _ func(string) error) error { m.lose(); return errPlain }},
	{name: "panics", outcome: "panic", do: func(_ context.Context, m *meeting, _ func(string) error) error { m.lose(); panic("on purpose") }},
	{name: "hangs", outcome: "error", hangs: true, do: func(ctx context.Context, m *meeting, _ func(string) error) error {
		m.lose()
		<-ctx.Done()
		return ctx.Err()
	}},
	{name: "messages", stream: true, do: messages(nil)},
	{name: "no messages", stream: true, do: func(_ context.Context, m *meeting, _ func(string) error) error { m.lose(); return nil }},
	{name: "messages and an error", stream: true, outcome: "error", do: messages(&failure{int(codes.DataLoss), "the rest is gone"})},
	{name: "an error", stream: true, outcome: "error", do: func(_ context.Context, m *meeting, _ func(string) error) error { m.lose(); return errPlain }},
}

func messages(err error) func(context.Context, *meeting, func(string) error) error {
	return func(_ context.Context, m *meeting, send func(string) error) error {
		_ = send("one")
		_ = send(strings.Repeat("two ", 5000))
		m.lose()
		if err := send("three"); err != nil {
			return err
		}
		return err
	}
}

// reply is what a client gets.
type reply struct {
	messages []string
	code     string // of the error; empty for none
	text     string
	reason   string // in ErrorInfo
	retry    bool   // there is RetryInfo
	headers  string
}

func (r reply) String() string {
	short := make([]string, len(r.messages))
	for i, m := range r.messages {
		short[i] = fmt.Sprintf("%.10q of %d", m, len(m))
	}
	return fmt.Sprintf("%v, error %s %q, reason %s, retry %v, headers %s", short, r.code, r.text, r.reason, r.retry, r.headers)
}

// service is a program with one of the methods behind a guard, which may be nil, and call is its client.
type service struct {
	name  string
	call  func(t *testing.T, ctx context.Context, m method, run *meeting, g *guard.Guard, tenant string) reply
	codes func(code string) string // what the client sees of a code of gRPC
	open  bool                     // the guard is never asked
}

var services = []service{
	{name: "connect over HTTP/1", call: callConnect(http1), codes: connectCode},
	{name: "connect over HTTP/2", call: callConnect(http2), codes: connectCode},
	{name: "gRPC of connect", call: callConnect(http2, connect.WithGRPC()), codes: connectCode},
	{name: "gateway to an endpoint", call: callGateway(false), codes: func(code string) string { return code }},
	// RegisterOrdersHandlerServer calls the service itself. No interceptor runs, and so no guard: put guards into the service
	// (guard.Func) or in front of the gateway (package middleware), or let the gateway call a server.
	{name: "gateway in process", call: callGateway(true), codes: func(code string) string { return code }, open: true},
}

func connectCode(code string) string {
	var c connect.Code
	for c = connect.CodeCanceled; c <= connect.CodeUnauthenticated; c++ {
		if codes.Code(c).String() == code {
			return c.String()
		}
	}
	return code
}

// TestServices plays all methods in all states, as TestNeighbours does.
func TestServices(t *testing.T) {
	n := 0
	for _, s := range services {
		t.Run(s.name, func(t *testing.T) {
			for _, m := range methods {
				without, _ := s.play(t, m, nil)
				for _, state := range states {
					if state.status != 0 && m.name != "small" && m.name != "messages" || state.midway && m.hangs {
						continue
					}
					n++
					with, a := s.play(t, m, &state)
					if wrong := s.judge(m, state, without, with, a); len(wrong) > 0 {
						t.Errorf("%s / %s / %s: %s\n\twithout: %v\n\twith:    %v\n\tguard:   %+v", s.name, m.name, state.name, strings.Join(wrong, "; "), without, with, a)
					}
				}
			}
		})
	}
	t.Logf("%d plays", n)
}

func (s service) play(t *testing.T, m method, st *state) (reply, account) {
	t.Helper()
	locker := memlock.New()
	run := &meeting{begun: make(chan struct{})}
	var events guardtest.Events
	var g *guard.Guard
	tenant := "acme"
	if st != nil {
		rec := guardtest.Record(locker, st.fault...)
		g = guard.Must(guard.New(rec, guard.Name("order.settle"), guard.Key(`order:#{req.id}:#{md.tenant}`), guard.Wait(time.Millisecond),
			guard.HoldAtLeast(time.Hour), guard.Observe(events.Observe)))
		tenant = st.tenant
		if st.midway {
			run.losing = func() { rec.Lose(theKey) }
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if m.hangs {
		go func() {
			select {
			case <-run.begun:
			case <-ctx.Done():
			}
			cancel()
		}()
	}
	r := s.call(t, ctx, m, run, g, tenant)
	held := locker.Peek(context.Background(), lock.Request{Key: theKey}) != nil
	return r, account{events.Outcomes(""), held, run.runs}
}

// refusals are the answers of a guard: a code of gRPC, and the reason.
var refusals = map[string][2]string{
	"busy": {"Aborted", "LOCK_BUSY"}, "outage": {"Unavailable", "LOCK_OUTAGE"}, "key": {"InvalidArgument", "LOCK_KEY"}, "lost": {"Internal", "LOCK_LOST"},
}

func (s service) judge(m method, st state, without, with reply, a account) (wrong []string) {
	if s.open {
		if fmt.Sprint(with) != fmt.Sprint(without) || len(a.outcomes) > 0 {
			wrong = append(wrong, "the guard was asked: say so where this program is described")
		}
		return wrong
	}
	outcome := cmp.Or(st.outcome, m.outcome, "ok")
	switch same, refusal := fmt.Sprint(with) == fmt.Sprint(without), refusals[st.outcome]; {
	case st.outcome == "" && !same:
		wrong = append(wrong, "another reply")
	case st.outcome == "" || st.outcome == "lost" && m.outcome != "" && same: // the method's own error
	case with.code != s.codes(refusal[0]) || with.reason != refusal[1] || with.retry != st.retry:
		wrong = append(wrong, fmt.Sprintf("want %s %s", s.codes(refusal[0]), refusal[1]))
	case st.status != 0 && len(with.messages) > 0:
		wrong = append(wrong, "messages")
	}
	if len(a.outcomes) != 1 || a.outcomes[0] != outcome && !(m.outcome == "panic" && a.outcomes[0] == "panic") {
		wrong = append(wrong, fmt.Sprintf("outcomes %q, want %s", a.outcomes, outcome))
	}
	if outcome != "lost" && a.held != (outcome == "ok") {
		wrong = append(wrong, fmt.Sprintf("the key is held for later: %v", a.held))
	}
	if (a.runs == 1) != (st.status == 0) {
		wrong = append(wrong, fmt.Sprintf("the method ran %d times", a.runs))
	}
	return wrong
}

// begin is the start of a method.
func (m method) begin(ctx context.Context, run *meeting, send func(string) error) error {
	run.runs++
	close(run.begun)
	return m.do(ctx, run, send)
}

// callConnect has a server of Connect, which compresses, and calls it by Connect's protocol.
func callConnect(p protocol, opts ...connect.ClientOption) func(*testing.T, context.Context, method, *meeting, *guard.Guard, string) reply {
	return func(t *testing.T, ctx context.Context, m method, run *meeting, g *guard.Guard, tenant string) (r reply) {
		options := []connect.HandlerOption{
			connect.WithCompressMinBytes(100),
			connect.WithRecover(func(context.Context, connect.Spec, http.Header, any) error {
				return connect.NewError(connect.CodeUnknown, errPlain)
			}),
		}
		if g != nil {
			options = append(options, connect.WithInterceptors(guard.Must(connectguard.New(connectguard.Service("latchkey.test.neighbour.v1.Orders", g)))))
		}
		fail := func(err error) error {
			if f, ok := err.(*failure); ok {
				return connect.NewError(connect.Code(f.status), f)
			}
			return err
		}
		mux := http.NewServeMux()
		mux.Handle(pb.Orders_Settle_FullMethodName, connect.NewUnaryHandler(pb.Orders_Settle_FullMethodName,
			func(ctx context.Context, _ *connect.Request[pb.Order]) (*connect.Response[pb.Receipt], error) {
				out := connect.NewResponse(new(pb.Receipt))
				out.Header().Set("Shop", "acme")
				out.Trailer().Set("Sum", "3")
				err := m.begin(ctx, run, func(text string) error { out.Msg.Text = text; return nil })
				return out, fail(err)
			}, options...))
		mux.Handle(pb.Orders_Watch_FullMethodName, connect.NewServerStreamHandler(pb.Orders_Watch_FullMethodName,
			func(ctx context.Context, _ *connect.Request[pb.Order], out *connect.ServerStream[pb.Receipt]) error {
				out.ResponseHeader().Set("Shop", "acme")
				out.ResponseTrailer().Set("Sum", "3")
				return fail(m.begin(ctx, run, func(text string) error { return out.Send(&pb.Receipt{Text: text}) }))
			}, options...))
		e := &env{t: t}
		url := e.serve(p, mux, io.Discard)
		transport := &http.Transport{Protocols: p.set()}
		e.close = append(e.close, transport.CloseIdleConnections)
		defer e.end()
		client := &http.Client{Transport: transport}
		opts := append(slices.Clone(opts), connect.WithSendGzip())
		req := connect.NewRequest(&pb.Order{Id: "7"})
		if tenant != "" {
			req.Header().Set("Tenant", tenant)
		}
		var err error
		var header, trailer http.Header
		if m.stream {
			var stream *connect.ServerStreamForClient[pb.Receipt]
			stream, err = connect.NewClient[pb.Order, pb.Receipt](client, url+pb.Orders_Watch_FullMethodName, opts...).CallServerStream(ctx, req)
			if err == nil {
				for stream.Receive() {
					r.messages = append(r.messages, stream.Msg().GetText())
				}
				err, header, trailer = stream.Err(), stream.ResponseHeader(), stream.ResponseTrailer()
				_ = stream.Close()
			}
		} else {
			var res *connect.Response[pb.Receipt]
			res, err = connect.NewClient[pb.Order, pb.Receipt](client, url+pb.Orders_Settle_FullMethodName, opts...).CallUnary(ctx, req)
			if err == nil {
				r.messages, header, trailer = []string{res.Msg.GetText()}, res.Header(), res.Trailer()
			}
		}
		r.headers = header.Get("Shop") + trailer.Get("Sum") + header.Get("Content-Encoding")
		if e, ok := errors.AsType[*connect.Error](err); ok {
			r.code, r.text = e.Code().String(), e.Message()
			for _, d := range e.Details() {
				value, _ := d.Value()
				r.detail(value)
			}
		}
		return r
	}
}

func (r *reply) detail(value any) {
	switch d := value.(type) {
	case *errdetails.ErrorInfo:
		r.reason = d.GetReason()
	case *errdetails.RetryInfo:
		r.retry = true
	}
}

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
func callGateway(inProcess bool) func(*testing.T, context.Context, method, *meeting, *guard.Guard, string) reply {
	return func(t *testing.T, ctx context.Context, m method, run *meeting, g *guard.Guard, tenant string) (r reply) {
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
			options = append(options, guard.Must(interceptor.New(interceptor.Service("latchkey.test.neighbour.v1.Orders", g))).ServerOptions()...)
		}
		server := grpc.NewServer(options...)
		o := &orders{method: m, run: run}
		mux := runtime.NewServeMux(runtime.WithIncomingHeaderMatcher(func(name string) (string, bool) { return name, name == "Tenant" }))
		life, end := context.WithCancel(context.Background())
		defer end()
		if inProcess {
			if m.stream || m.outcome == "panic" { // it has no streams, and net/http recovers
				return reply{}
			}
			if err := pb.RegisterOrdersHandlerServer(life, mux, o); err != nil {
				t.Fatal(err)
			}
		} else {
			pb.RegisterOrdersServer(server, o)
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			go func() { _ = server.Serve(listener) }()
			defer server.Stop()
			if err := pb.RegisterOrdersHandlerFromEndpoint(life, mux, listener.Addr().String(), []grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials())}); err != nil {
				t.Fatal(err)
			}
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
		r.code = classify(ctx, err, "no answer")
		return r
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		r.code = classify(ctx, err, "broken")
		return r
	}
	r.headers = res.Header.Get("Grpc-Metadata-Shop")
	type failed struct {
		Code    int
		Message string
		Details []struct {
			Type   string `json:"@type"`
			Reason string
		}
	}
	var line struct {
		failed
		Text   *string
		Result struct{ Text string }
		Error  *failed
	}
	d := json.NewDecoder(bytes.NewReader(data))
	for d.More() {
		line.Error, line.Text = nil, nil
		if err := d.Decode(&line); err != nil {
			r.code = err.Error()
			return r
		}
		f := line.Error
		if f == nil && res.StatusCode != http.StatusOK {
			f = &line.failed
		}
		switch {
		case f != nil:
			r.code, r.text = codes.Code(f.Code).String(), f.Message
			for _, d := range f.Details {
				r.reason = cmp.Or(r.reason, d.Reason)
				r.retry = r.retry || strings.HasSuffix(d.Type, "RetryInfo")
			}
			if want := runtime.HTTPStatusFromCode(codes.Code(f.Code)); res.StatusCode != want && res.StatusCode != http.StatusOK {
				r.text += fmt.Sprintf(" (status %d, want %d)", res.StatusCode, want)
			}
		case line.Text != nil:
			r.messages = append(r.messages, *line.Text)
		default:
			r.messages = append(r.messages, line.Result.Text)
		}
	}
	return r
}
