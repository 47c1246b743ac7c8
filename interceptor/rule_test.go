package interceptor_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/interceptor"
	"github.com/latchkey-go/latchkey/lock/memlock"
)

// untyped adds a service to the registry whose messages have no Go types.
var untyped = sync.OnceValue(func() error {
	file, err := protodesc.NewFile(&descriptorpb.FileDescriptorProto{
		Name:        new("latchkey/interceptor/untyped.proto"),
		Package:     new("untyped"),
		MessageType: []*descriptorpb.DescriptorProto{{Name: new("In")}, {Name: new("Out")}},
		Service: []*descriptorpb.ServiceDescriptorProto{{
			Name: new("Service"),
			Method: []*descriptorpb.MethodDescriptorProto{{
				Name: new("Do"), InputType: new(".untyped.In"), OutputType: new(".untyped.Out"),
			}},
		}},
	}, nil)
	if err != nil {
		return err
	}
	return protoregistry.GlobalFiles.RegisterFile(file)
})

func TestStartUpMistakes(t *testing.T) {
	if err := untyped(); err != nil {
		t.Fatal(err)
	}
	l := memlock.New()
	key := func(template string) *guard.Guard { return newGuard(t, l, guard.Key(template), guard.OneKey()) }
	skip := newGuard(t, l, guard.Key("k"), guard.OneKey(), guard.Busy(guard.Skip))
	const health = healthpb.Health_Check_FullMethodName
	tests := []struct {
		rules []interceptor.Rule
		want  []string // in the error
	}{
		{[]interceptor.Rule{interceptor.Method(health, nil)}, []string{`"/grpc.health.v1.Health/Check"`, "without a guard"}},
		{[]interceptor.Rule{{}}, []string{"without a guard"}},
		{[]interceptor.Rule{interceptor.Method("", key("k"))}, []string{`guard "g"`, "no such method"}},
		{[]interceptor.Rule{interceptor.Method("/grpc.health.v1.Health/Chekc", key("k"))},
			[]string{`guard "g"`, `did you mean "/grpc.health.v1.Health/Check"`}},
		{[]interceptor.Rule{interceptor.Method("Health/Check", key("k"))}, []string{`did you mean "/grpc.health.v1.Health/Check"`}},
		{[]interceptor.Rule{interceptor.Method("grpc.health.v1.Health.Check", key("k"))}, []string{`did you mean "/grpc.health.v1.Health/Check"`}},
		{[]interceptor.Rule{interceptor.Method("/grpc.health.v1.Health/Check/", key("k"))}, []string{`did you mean "/grpc.health.v1.Health/Check"`}},
		{[]interceptor.Rule{interceptor.Method("/grpc.health.v1.Health", key("k"))}, []string{"no such method"}},
		{[]interceptor.Rule{interceptor.Method("/grpc.health.v1.HealthCheckRequest/service", key("k"))}, []string{"no such method"}},
		{[]interceptor.Rule{interceptor.Method("/shop.v1.Basket/Put", key("k"))}, []string{"no such method", "import", "Request"}},
		{[]interceptor.Rule{interceptor.Method("shop.Basket", key("k"), interceptor.Request[*testpb.Empty]())}, []string{"no such method"}},
		{[]interceptor.Rule{interceptor.Method("/shop.v1.Basket/Put", key("k"), interceptor.Request[testpb.SimpleRequest]())},
			[]string{`guard "g"`, "pointer", "SimpleRequest"}},
		{[]interceptor.Rule{interceptor.Method("/shop.v1.Basket/Put", key("k"), interceptor.Request[any]())}, []string{"pointer"}},
		{[]interceptor.Rule{interceptor.Method("/shop.v1.Basket/Put", skip, interceptor.Request[*testpb.Empty]())},
			[]string{`guard "g"`, "skip", "responses"}},
		{[]interceptor.Rule{interceptor.Method("/untyped.Service/Do", key("k"))}, []string{"no Go type", "untyped.In"}},
		{[]interceptor.Rule{interceptor.Method("/untyped.Service/Do", skip, interceptor.Request[*testpb.Empty]())}, []string{"responses"}},
		{[]interceptor.Rule{interceptor.Method(health, key("k")), interceptor.Method(health, key("j"))},
			[]string{`guard "g"`, `"/grpc.health.v1.Health/Check"`, "another rule"}},
		{[]interceptor.Rule{interceptor.Method(health, key("service:#{req.Servcie}"))},
			[]string{`"/grpc.health.v1.Health/Check"`, `guard "g"`, "offset", "Service"}},
		{[]interceptor.Rule{interceptor.Method(health, key("service:#{request.Service}"))}, []string{`guard "g"`, "offset"}},
		{[]interceptor.Rule{interceptor.Method(unaryCall, key("file:#{req.Payload}"))}, []string{`guard "g"`, "offset", "Payload"}},
		{[]interceptor.Rule{interceptor.Method(health, newGuard(t, l, guard.Key("k"), guard.OneKey(), guard.When("req.Service")))}, []string{`guard "g"`, "when", "true or false"}},
		{[]interceptor.Rule{interceptor.Method(health, newGuard(t, l))}, []string{`guard "g"`, "key"}},
		{[]interceptor.Rule{interceptor.Method(health, newGuard(t, l, guard.KeyFunc(func(*testpb.SimpleRequest) (string, error) { return "k", nil })))},
			[]string{`guard "g"`, "SimpleRequest"}},
	}
	for _, tt := range tests {
		i, err := interceptor.UnaryServer(tt.rules...)
		if err == nil || i != nil {
			t.Errorf("no error for what should say %q", tt.want)
			continue
		}
		for _, part := range tt.want {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("error %q does not say %s", err, part)
			}
		}
	}
}

// A rule that is given to the wrong interceptor would never run.
func TestKindOfMethod(t *testing.T) {
	g := newGuard(t, memlock.New(), guard.Key("k"), guard.OneKey())
	for _, stream := range []string{duplexCall, inputCall, outputCall} {
		if _, err := interceptor.UnaryServer(interceptor.Method(stream, g)); err == nil || !strings.Contains(err.Error(), "StreamServer") {
			t.Errorf("UnaryServer(%s) = %v, want a hint at StreamServer", stream, err)
		}
		if _, err := interceptor.StreamServer(interceptor.Method(stream, g)); err != nil {
			t.Errorf("StreamServer(%s) = %v", stream, err)
		}
	}
	if _, err := interceptor.StreamServer(interceptor.Method(unaryCall, g)); err == nil || !strings.Contains(err.Error(), "UnaryServer") {
		t.Errorf("StreamServer(%s) = %v, want a hint at UnaryServer", unaryCall, err)
	}
}

// One guard can serve methods with different requests.
func TestGuardOfManyMethods(t *testing.T) {
	g := newGuard(t, memlock.New(), guard.Key("#{req.ResponseStatus.Message}"))
	if _, err := interceptor.StreamServer(interceptor.Method(outputCall, g), interceptor.Method(duplexCall, g)); err != nil {
		t.Error(err)
	}
	if _, err := interceptor.UnaryServer(interceptor.Method(unaryCall, g)); err != nil {
		t.Error(err)
	}
}

// jsonCodec is the codec of a server without protobuf.
type jsonCodec struct{}

func (jsonCodec) Name() string                    { return "json" }
func (jsonCodec) Marshal(v any) ([]byte, error)   { return json.Marshal(v) }
func (jsonCodec) Unmarshal(b []byte, v any) error { return json.Unmarshal(b, v) }

type put struct{ Item string }

// basket is a service without descriptors: its methods answer the item that they are sent.
var basket = grpc.ServiceDesc{
	ServiceName: "shop.v1.Basket",
	HandlerType: (*any)(nil),
	Methods: []grpc.MethodDesc{{
		MethodName: "Put",
		Handler: func(srv any, ctx context.Context, dec func(any) error, i grpc.UnaryServerInterceptor) (any, error) {
			req := new(put)
			if err := dec(req); err != nil {
				return nil, err
			}
			info := &grpc.UnaryServerInfo{Server: srv, FullMethod: "/shop.v1.Basket/Put"}
			return i(ctx, req, info, func(_ context.Context, req any) (any, error) { return req, nil })
		},
	}},
	Streams: []grpc.StreamDesc{{
		StreamName:    "PutAll",
		ClientStreams: true,
		ServerStreams: true,
		Handler: func(_ any, s grpc.ServerStream) error {
			var p put
			if err := s.RecvMsg(&p); err != nil {
				return err
			}
			return s.SendMsg(&p)
		},
	}},
}

func TestOwnCodec(t *testing.T) {
	l := newLocker()
	g := newGuard(t, l, guard.Key("item:#{req.Item}"))
	server := grpc.NewServer(grpc.ForceServerCodec(jsonCodec{}),
		unary(t, "/shop.v1.Basket/Put", g, interceptor.Request[*put]()),
		streaming(t, "/shop.v1.Basket/PutAll", g, interceptor.Request[*put]()))
	server.RegisterService(&basket, struct{}{})
	conn := dial(t, server, grpc.WithDefaultCallOptions(grpc.ForceCodec(jsonCodec{})))

	var res put
	if err := conn.Invoke(t.Context(), "/shop.v1.Basket/Put", &put{"tea"}, &res); err != nil || res.Item != "tea" || <-l.keys != "item:tea" {
		t.Errorf("Put = %v, %v, want the item back, under its lock", res, err)
	}
	if err := conn.Invoke(t.Context(), "/shop.v1.Basket/Put", &put{}, &res); failureOf(err).code != codes.InvalidArgument {
		t.Errorf("Put of nothing = %v, want InvalidArgument", err)
	}
	stream, err := conn.NewStream(t.Context(), &basket.Streams[0], "/shop.v1.Basket/PutAll")
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.SendMsg(&put{"jam"}); err != nil {
		t.Fatal(err)
	}
	if err := stream.RecvMsg(&res); err != nil || res.Item != "jam" || <-l.keys != "item:jam" {
		t.Errorf("PutAll = %v, %v, want the item back, under its lock", res, err)
	}
}

// TestOverriddenToSkip has a guard that skips only as its registry says, before a method of whose response nothing is known.
func TestOverriddenToSkip(t *testing.T) {
	reg := guard.Must(guard.NewRegistry())
	if err := reg.Override(map[string]guard.Spec{"g": {Busy: guard.Skip}}); err != nil {
		t.Fatal(err)
	}
	g := newGuard(t, memlock.New(), guard.In(reg), guard.Key("k"), guard.OneKey())
	_, err := interceptor.New(interceptor.Method("/shop.v1.Basket/Put", g, interceptor.Request[*testpb.SimpleRequest]()))
	if err == nil || !strings.Contains(err.Error(), "a skipped call must answer something") {
		t.Errorf("New = %v", err)
	}
	listed, err := interceptor.New(interceptor.Method(healthpb.Health_Check_FullMethodName, g))
	if err != nil || !strings.Contains(listed.String(), "busy=skip") {
		t.Errorf("New = %v, %v, want what the registry says in the list", listed, err)
	}
}

// Where nothing can be answered in place of the method, a guard that is in use does not begin to skip.
func TestOverriddenToSkipLater(t *testing.T) {
	reg := guard.Must(guard.NewRegistry())
	g := newGuard(t, memlock.New(), guard.In(reg), guard.Key("k"), guard.OneKey())
	guards := guard.Must(interceptor.New(interceptor.Method("/shop.v1.Basket/Put", g, interceptor.Request[*testpb.SimpleRequest]())))
	err := reg.Override(map[string]guard.Spec{"g": {Busy: guard.Skip}})
	if err == nil || !strings.Contains(err.Error(), `guard "g": a skipped call must answer something`) {
		t.Errorf("Override = %v", err)
	}
	if err := reg.Override(map[string]guard.Spec{"g": {Wait: time.Second}}); err != nil || !strings.Contains(guards.String(), "wait=1s") {
		t.Errorf("Override = %v, and the list is %s", err, guards)
	}
}
