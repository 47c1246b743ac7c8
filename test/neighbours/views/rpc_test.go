package views

import (
	"context"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/guard/guardtest"
	"github.com/latchkey-go/latchkey/interceptor"
	"github.com/latchkey-go/latchkey/interceptor/connectguard"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/memlock"
	"github.com/latchkey-go/latchkey/middleware"
	pb "github.com/latchkey-go/latchkey/test/neighbours/neighbourpb"
)

// The readers of calls are handlers of Connect and gRPC, the latter also behind gRPC's gateway: their messages, and the metadata that came
// with them.
var calls = []view{
	{"Connect message", "req.id", onConnect(func(r *connect.Request[pb.Order]) (string, error) { return r.Msg.GetId(), nil }), nil},
	{"Connect header", "md.fact", onConnect(func(r *connect.Request[pb.Order]) (string, error) { return r.Header().Get("Fact"), nil }), nil},
	{"Connect binary header", `md["fact-bin"]`, onConnect(func(r *connect.Request[pb.Order]) (string, error) {
		data, err := connect.DecodeBinaryHeader(r.Header().Get("Fact-Bin"))
		return string(data), err
	}), nil},
	{"gRPC message behind a gateway", "req.id", onGateway(func(_ context.Context, m *pb.Order) string { return m.GetId() }), nil},
	{"gRPC metadata behind a gateway", `md["grpcgateway-fact"]`, onGateway(func(ctx context.Context, _ *pb.Order) string { return incoming(ctx, "grpcgateway-fact") }), nil},
}

// TestTwoViewsOfCalls is TestTwoViews for calls that are requests of HTTP.
func TestTwoViewsOfCalls(t *testing.T) {
	seed := newSeed(t)
	for _, v := range calls {
		for _, declared := range []string{"v:#{" + v.fact + "}", "v:#{" + v.fact + ` ?? "none"}`, "v; when=" + v.fact + ` == "42"`} {
			if strings.Contains(declared, "??") && v.fact == "req.id" {
				continue // a text of a message can't be missing
			}
			t.Run(v.reader+"/"+declared, func(t *testing.T) { v.compare(t, declared, callSpelling, seed) })
		}
	}
}

// callSpelling is a call of the method in bytes.
func callSpelling(r *rand.Rand) string {
	pick := func(of ...string) string { return of[r.IntN(len(of))] }
	var body, kind string
	if r.IntN(3) == 0 {
		body, kind = wire(r), "application/proto"
	} else {
		var members []string
		for range 1 + r.IntN(5)/4 {
			members = append(members, pick(`"id"`, `"id"`, `"\u0069d"`, `"ID"`)+":"+pick(`"42"`, `"42"`, `"4\u0032"`, `"7"`, `""`, "null", "42"))
		}
		body, kind = "{"+strings.Join(members, pick(",", " ,\n"))+"}", pick("application/json", "application/json", "application/json; charset=utf-8", "")
	}
	var head strings.Builder
	for range pick("", "x", "x", "x", "xx") {
		fmt.Fprintf(&head, "%s: %s\r\n", pick("Fact", "fact", "FACT", "grpc-metadata-fact"), pick("42", "42", " 42", "7", ""))
	}
	for range pick("", "x", "x", "x", "xx") {
		fmt.Fprintf(&head, "Fact-Bin: %s\r\n", pick(base64.StdEncoding.EncodeToString([]byte("42")), base64.RawStdEncoding.EncodeToString([]byte("42")), "Nw", "?", ""))
	}
	if kind != "" {
		fmt.Fprintf(&head, "Content-Type: %s\r\n", kind)
	}
	return "POST " + pb.Orders_Settle_FullMethodName + " HTTP/1.1\r\nHost: a.example\r\n" + head.String() + "Content-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n" + body
}

// wire is an Order as it may come: the last of several ids counts, and what nobody knows is kept.
func wire(r *rand.Rand) string {
	var m []byte
	for range r.IntN(3) {
		m = protowire.AppendTag(m, 1, protowire.BytesType)
		m = protowire.AppendString(m, []string{"42", "42", "7", ""}[r.IntN(4)])
		if r.IntN(3) == 0 {
			m = protowire.AppendTag(m, 9, protowire.VarintType)
			m = protowire.AppendVarint(m, 7)
		}
	}
	return string(m)
}

func onConnect(read func(*connect.Request[pb.Order]) (string, error)) mount {
	return func(g *guard.Guard, saw func(string), _ []middleware.Option) http.Handler {
		guards := guard.Must(connectguard.New(connectguard.Method(pb.Orders_Settle_FullMethodName, g)))
		return connect.NewUnaryHandler(pb.Orders_Settle_FullMethodName, func(_ context.Context, r *connect.Request[pb.Order]) (*connect.Response[pb.Receipt], error) {
			s, err := read(r)
			report(saw, s, err)
			return connect.NewResponse(&pb.Receipt{}), nil
		}, connect.WithInterceptors(guards))
	}
}

// orders is a service that reports what it takes for the fact.
type orders struct {
	pb.UnimplementedOrdersServer
	read func(context.Context, *pb.Order) string
	saw  func(string)
}

func (o *orders) Settle(ctx context.Context, m *pb.Order) (*pb.Receipt, error) {
	o.saw(o.read(ctx, m))
	return &pb.Receipt{}, nil
}

func incoming(ctx context.Context, name string) string {
	if all := metadata.ValueFromIncomingContext(ctx, name); len(all) > 0 {
		return all[0]
	}
	return ""
}

// dialOrders serves o behind the guard, and connects to it.
func dialOrders(o *orders, g *guard.Guard) (*grpc.ClientConn, func()) {
	guards := guard.Must(interceptor.New(interceptor.Method(pb.Orders_Settle_FullMethodName, g)))
	server := grpc.NewServer(guards.ServerOptions()...)
	pb.RegisterOrdersServer(server, o)
	listener := guard.Must(net.Listen("tcp", "127.0.0.1:0"))
	go func() { _ = server.Serve(listener) }()
	conn := guard.Must(grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials())))
	return conn, func() { conn.Close(); server.Stop() }
}

func onGateway(read func(context.Context, *pb.Order) string) mount {
	return func(g *guard.Guard, saw func(string), _ []middleware.Option) http.Handler {
		conn, _ := dialOrders(&orders{read: read, saw: saw}, g) // for as long as the test's process
		m := runtime.NewServeMux(runtime.WithIncomingHeaderMatcher(func(name string) (string, bool) {
			if name == "Fact" {
				return "grpcgateway-fact", true
			}
			return runtime.DefaultHeaderMatcher(name)
		}))
		if err := pb.RegisterOrdersHandler(context.Background(), m, conn); err != nil {
			panic(err)
		}
		return m
	}
}

// raw is a codec for messages that were made by hand.
type raw struct{ encoding.CodecV2 }

func (r raw) Marshal(v any) (mem.BufferSlice, error) {
	if text, ok := v.(*string); ok {
		return mem.BufferSlice{mem.SliceBuffer(*text)}, nil
	}
	return r.CodecV2.Marshal(v)
}

// TestTwoViewsOfGRPC calls a method with messages and metadata of all spellings.
func TestTwoViewsOfGRPC(t *testing.T) {
	for _, tt := range []struct {
		key  string
		read func(context.Context, *pb.Order) string
	}{
		{"v:#{req.id}", func(_ context.Context, m *pb.Order) string { return m.GetId() }},
		{"v:#{md.fact}", func(ctx context.Context, _ *pb.Order) string { return incoming(ctx, "fact") }},
		{`v:#{md.fact ?? "none"}`, func(ctx context.Context, _ *pb.Order) string { return incoming(ctx, "fact") }},
		{`v:#{md["fact-bin"]}`, func(ctx context.Context, _ *pb.Order) string { return incoming(ctx, "fact-bin") }},
	} {
		seed := newSeed(t)
		r := rand.New(rand.NewPCG(seed, 0))
		var saw, locked string
		ran := false
		l := memlock.New()
		conn, stop := dialOrders(&orders{read: tt.read, saw: func(s string) { saw, ran = s, true }},
			guard.Must(guard.New(guardtest.Func(func(ctx context.Context, q lock.Request) (lock.Hold, error) {
				locked = q.Key
				return l.Acquire(ctx, q)
			}), guard.Name("view"), guard.Key(tt.key))))
		keys, admitted := make(map[string]string), 0
		for range 1000 {
			saw, locked, ran = "", "(none)", false
			ctx := t.Context()
			for _, name := range []string{"fact", "Fact", "fact-bin"} {
				if r.IntN(2) == 0 {
					ctx = metadata.AppendToOutgoingContext(ctx, name, []string{"42", "7", " 42", ""}[r.IntN(4)])
				}
			}
			message := wire(r)
			_ = conn.Invoke(ctx, pb.Orders_Settle_FullMethodName, &message, new(pb.Receipt), grpc.ForceCodecV2(raw{encoding.GetCodecV2("proto")}))
			if !ran {
				continue
			}
			admitted++
			if key, ok := keys[saw]; ok && key != locked {
				t.Errorf("%s, seed %d: the handler sees %q with the keys %s and %s", tt.key, seed, saw, key, locked)
			}
			keys[saw] = locked
		}
		if admitted < 50 || len(keys) < 2 {
			t.Errorf("%s: %d calls came to the handler, with %v", tt.key, admitted, keys)
		}
		stop()
	}
}
