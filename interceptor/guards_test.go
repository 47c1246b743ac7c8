package interceptor_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/interceptor"
	"github.com/latchkey-go/latchkey/interceptor/internal/shoppb"
	"github.com/latchkey-go/latchkey/lock"
)

// methods lists which guard stands in front of which method.
func methods(g *interceptor.Guards) string {
	var b strings.Builder
	for name, spec := range g.All() {
		b.WriteString(name[strings.LastIndex(name, "/")+1:] + "=" + spec.Name + " ")
	}
	return strings.TrimSpace(b.String())
}

// A rule for a service or a pattern guards each of its methods, and its template is checked against each of their requests.
func TestRulesForManyMethods(t *testing.T) {
	l := newLocker()
	named := func(name, key string) *guard.Guard {
		g, err := guard.New(l, guard.Name(name), guard.Key(key), guard.OneKey())
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	const list = shoppb.Shop_List_FullMethodName
	const service = "latchkey.test.shop.v1.Shop"
	for _, tt := range []struct {
		rules []interceptor.Rule
		want  string // methods, or else
		err   []string
	}{
		{rules: []interceptor.Rule{interceptor.Service(service, named("s", "#{req.order_id}"))}, want: "Fill=s List=s Order=s Watch=s"},
		{rules: []interceptor.Rule{interceptor.Service("/"+service, named("s", "#{req.OrderId}")), interceptor.Unguarded(list)},
			want: "Fill=s Order=s Watch=s"},
		{rules: []interceptor.Rule{interceptor.Match("/latchkey.test.shop.*/[a-z]*", named("p", "k"))}, err: []string{"knows * only"}},
		{rules: []interceptor.Rule{interceptor.Match("/latchkey.test.shop.*/*i*", named("p", "k"))}, want: "Fill=p List=p"},
		{rules: []interceptor.Rule{interceptor.Match("/latchkey.test.*/*", named("p", "k")), interceptor.Service(service, named("s", "k")),
			interceptor.Method(list, named("m", "k"))}, err: []string{`pattern "/latchkey.test.*/*"`, "never applies"}},
		{rules: []interceptor.Rule{interceptor.FromOptions(l), interceptor.Service(service, named("s", "k"))},
			want: "Fill=latchkey.test.shop.v1.Shop/Fill List=s Order=shop.order Watch=latchkey.test.shop.v1.Shop/Watch"},
		{rules: []interceptor.Rule{interceptor.FromOptions(l), interceptor.Method(shoppb.Shop_Order_FullMethodName, named("m", "k")),
			interceptor.Unguarded(shoppb.Shop_Fill_FullMethodName)}, want: "Order=m Watch=latchkey.test.shop.v1.Shop/Watch"},
		{rules: []interceptor.Rule{interceptor.Service("grpc.testing.TestService", named("s", "#{req.response_status.message}"))},
			err: []string{"EmptyCall", "StreamingInputCall", "response_status"}},
	} {
		guards, err := interceptor.New(tt.rules...)
		if tt.err == nil && err == nil {
			if got := methods(guards); got != tt.want {
				t.Errorf("guards are %s, want %s", got, tt.want)
			}
			continue
		}
		for _, part := range tt.err {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("error %v does not say %s", err, part)
			}
		}
		if tt.err == nil {
			t.Errorf("no guards %s: %v", tt.want, err)
		}
	}
}

// shop is the service of shop.proto: it counts orders per method, without a lock of its own.
type shop struct {
	shoppb.UnimplementedShopServer
	orders  int64
	running chan struct{} // gets a value when a handler begins
	end     chan struct{} // lets one return
}

func (s *shop) Order(context.Context, *shoppb.OrderRequest) (*shoppb.OrderResponse, error) {
	seen := s.orders
	s.running <- struct{}{}
	<-s.end
	s.orders = seen + 1
	return &shoppb.OrderResponse{Orders: s.orders}, nil
}

func (s *shop) Watch(_ *shoppb.OrderRequest, stream grpc.ServerStreamingServer[shoppb.OrderResponse]) error {
	s.running <- struct{}{}
	<-s.end
	return stream.Send(&shoppb.OrderResponse{})
}

func (s *shop) Fill(stream grpc.ClientStreamingServer[shoppb.OrderRequest, shoppb.OrderResponse]) error {
	s.running <- struct{}{}
	<-s.end
	return stream.SendAndClose(&shoppb.OrderResponse{Orders: 1})
}

func newShop(t *testing.T, l lock.Locker) (*shop, shoppb.ShopClient) {
	t.Helper()
	guards, err := interceptor.New(interceptor.FromOptions(l))
	if err != nil {
		t.Fatal(err)
	}
	s := &shop{running: make(chan struct{}, 100), end: make(chan struct{}, 100)}
	server := grpc.NewServer(guards.ServerOptions()...)
	shoppb.RegisterShopServer(server, s)
	return s, shoppb.NewShopClient(dial(t, server))
}

func order(id string) *shoppb.OrderRequest {
	return &shoppb.OrderRequest{OrderId: id, Customer: &shoppb.Customer{CustomerId: id}}
}

// Methods with an option in their .proto file are guarded by it, and exclude each other over a real connection.
func TestOptionsOfAProtoFile(t *testing.T) {
	l := newLocker()
	s, client := newShop(t, l)
	results := make(chan error, 10)
	for range 10 {
		go func() {
			_, err := client.Order(t.Context(), order("7"))
			results <- err
		}()
	}
	for range 10 {
		<-s.running
		s.end <- struct{}{}
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
	if s.orders != 10 {
		t.Errorf("%d orders after 10 calls", s.orders)
	}
	if key := <-l.keys; key != "order:7" {
		t.Errorf("key %q, want order:7", key)
	}
	_, err := client.Order(t.Context(), &shoppb.OrderRequest{})
	if f := failureOfAny(err); f.code != codes.InvalidArgument || !strings.Contains(err.Error(), `"shop.order"`) || !strings.Contains(err.Error(), "req.order_id") {
		t.Errorf("without an id: %v, want InvalidArgument that names shop.order and req.order_id", err)
	}
}

// An option guards streams, too, and its words hold: two at once, and whoever comes third is skipped.
func TestOptionsOfStreams(t *testing.T) {
	s, client := newShop(t, newLocker())
	first, err := client.Watch(t.Context(), order("7"))
	if err != nil {
		t.Fatal(err)
	}
	<-s.running
	second, err := client.Watch(t.Context(), order("7"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := second.Recv(); failureOfAny(err).code != codes.Aborted {
		t.Errorf("second Watch = %v, want Aborted", err)
	}
	s.end <- struct{}{}
	if _, err := first.Recv(); err != nil {
		t.Error(err)
	}
	if _, err := first.Recv(); !errors.Is(err, io.EOF) {
		t.Error(err)
	}

	ctx := metadata.AppendToOutgoingContext(t.Context(), "tenant", "acme")
	fill := func() grpc.ClientStreamingClient[shoppb.OrderRequest, shoppb.OrderResponse] {
		stream, err := client.Fill(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return stream
	}
	a, b := fill(), fill()
	<-s.running
	<-s.running
	if res, err := fill().CloseAndRecv(); err != nil || res.GetOrders() != 0 {
		t.Errorf("third Fill = %v, %v, want an empty response", res, err)
	}
	s.end <- struct{}{}
	s.end <- struct{}{}
	for _, stream := range []grpc.ClientStreamingClient[shoppb.OrderRequest, shoppb.OrderResponse]{a, b} {
		if res, err := stream.CloseAndRecv(); err != nil || res.GetOrders() != 1 {
			t.Errorf("Fill = %v, %v", res, err)
		}
	}
}

// failureOfAny is failureOf for guards of other names.
func failureOfAny(err error) failure {
	f := failureOf(err)
	f.reason = strings.TrimSuffix(f.reason, " of nobody")
	return f
}

// Options in Go are defaults for those of .proto files.
func TestDefaultsForOptions(t *testing.T) {
	guards, err := interceptor.New(interceptor.FromOptions(newLocker(), guard.Wait(guard.Forever), guard.Busy(guard.Fail)))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, spec := range guards.All() {
		got = append(got, spec.Wait.String()+" "+spec.Busy.String())
	}
	forever := guard.Forever.String()
	if want := forever + " skip, " + forever + " fail, " + forever + " fail"; strings.Join(got, ", ") != want {
		t.Errorf("specs have %q, want %s", got, want)
	}
}

// The list of guarded methods can be printed: what is guarded, how, and by which rule.
func TestGuardsPrintThemselves(t *testing.T) {
	guards, err := interceptor.New(interceptor.FromOptions(newLocker()),
		interceptor.Method(unaryCall, newGuard(t, newLocker(), guard.Key("order:#{req.response_size}"))))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`/grpc.testing.TestService/UnaryCall  order:#{req.response_size}; name=g  (method "/grpc.testing.TestService/UnaryCall")`,
		`/latchkey.test.shop.v1.Shop/Fill  fill:#{md.tenant}; name=latchkey.test.shop.v1.Shop/Fill; kind=permit; limit=2; busy=skip  (option of method`,
	} {
		if !strings.Contains(guards.String(), want) {
			t.Errorf("guards print\n%s without %s", guards, want)
		}
	}
}

// Each constructor refuses to guard nothing.
func TestNoRules(t *testing.T) {
	_, err := interceptor.New()
	_, unaryErr := interceptor.UnaryServer()
	_, streamErr := interceptor.StreamServer()
	for _, err := range []error{err, unaryErr, streamErr} {
		if err == nil || !strings.Contains(err.Error(), "no rules") {
			t.Errorf("error %v, want one about no rules", err)
		}
	}
	if _, err := interceptor.New(interceptor.Method(unaryCall, newGuard(t, newLocker(), guard.Key("k"), guard.OneKey()), nil)); err == nil ||
		!strings.Contains(err.Error(), "option 1 of 1 is nil") {
		t.Errorf("error %v, want one about a nil option", err)
	}
}
