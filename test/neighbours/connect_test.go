package neighbours

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/interceptor/connectguard"
	pb "github.com/latchkey-go/latchkey/test/neighbours/neighbourpb"
)

// callConnect has a server of Connect, which compresses, and calls it by one of Connect's protocols.
func callConnect(p protocol, opts ...connect.ClientOption) caller {
	return func(t *testing.T, ctx context.Context, m method, run *meeting, g *guard.Guard, tenant string) (r reply) {
		e := &env{t: t}
		url := e.serve(p, serveConnect(m, run, g), io.Discard)
		transport := &http.Transport{Protocols: p.set()}
		e.close = append(e.close, transport.CloseIdleConnections)
		defer e.end()
		opts := append(slices.Clone(opts), connect.WithSendGzip())
		client := func(procedure string) *connect.Client[pb.Order, pb.Receipt] {
			return connect.NewClient[pb.Order, pb.Receipt](&http.Client{Transport: transport}, url+procedure, opts...)
		}
		req := connect.NewRequest(&pb.Order{Id: "7"})
		if tenant != "" {
			req.Header().Set("Tenant", tenant)
		}
		var header, trailer http.Header
		var err error
		if m.stream {
			var stream *connect.ServerStreamForClient[pb.Receipt]
			if stream, err = client(pb.Orders_Watch_FullMethodName).CallServerStream(ctx, req); err == nil {
				for stream.Receive() {
					r.messages = append(r.messages, stream.Msg().GetText())
				}
				err, header, trailer = stream.Err(), stream.ResponseHeader(), stream.ResponseTrailer()
				_ = stream.Close()
			}
		} else {
			var res *connect.Response[pb.Receipt]
			if res, err = client(pb.Orders_Settle_FullMethodName).CallUnary(ctx, req); err == nil {
				r.messages, header, trailer = []string{res.Msg.GetText()}, res.Header(), res.Trailer()
			}
		}
		r.headers = header.Get("Shop") + trailer.Get("Sum")
		r.failed(err)
		return r
	}
}

// failed notes the error of a call.
func (r *reply) failed(err error) {
	e, ok := errors.AsType[*connect.Error](err)
	if !ok {
		return
	}
	r.code, r.text = codes.Code(e.Code()), e.Message()
	for _, d := range e.Details() {
		value, _ := d.Value()
		switch d := value.(type) {
		case *errdetails.ErrorInfo:
			r.reason = d.GetReason()
		case *errdetails.RetryInfo:
			r.retry = true
		}
	}
}

// serveConnect serves m, both as a unary method and as a stream.
func serveConnect(m method, run *meeting, g *guard.Guard) http.Handler {
	options := []connect.HandlerOption{
		connect.WithCompressMinBytes(100),
		connect.WithRecover(func(context.Context, connect.Spec, http.Header, any) error {
			return connect.NewError(connect.CodeUnknown, errPlain)
		}),
	}
	if g != nil {
		options = append(options, connect.WithInterceptors(guard.Must(connectguard.New(connectguard.Service(pb.Orders_ServiceDesc.ServiceName, g)))))
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
			return out, fail(m.begin(ctx, run, func(text string) error { out.Msg.Text = text; return nil }))
		}, options...))
	mux.Handle(pb.Orders_Watch_FullMethodName, connect.NewServerStreamHandler(pb.Orders_Watch_FullMethodName,
		func(ctx context.Context, _ *connect.Request[pb.Order], out *connect.ServerStream[pb.Receipt]) error {
			out.ResponseHeader().Set("Shop", "acme")
			out.ResponseTrailer().Set("Sum", "3")
			return fail(m.begin(ctx, run, func(text string) error { return out.Send(&pb.Receipt{Text: text}) }))
		}, options...))
	return mux
}
