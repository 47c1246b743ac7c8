package interceptor_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/interceptor"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/memlock"
)

const (
	unaryCall  = testpb.TestService_UnaryCall_FullMethodName
	outputCall = testpb.TestService_StreamingOutputCall_FullMethodName
	inputCall  = testpb.TestService_StreamingInputCall_FullMethodName
	duplexCall = testpb.TestService_FullDuplexCall_FullMethodName
)

// service is a server whose methods are written by each test.
type service struct {
	testpb.UnimplementedTestServiceServer
	unary  func(context.Context, *testpb.SimpleRequest) (*testpb.SimpleResponse, error)
	output func(*testpb.StreamingOutputCallRequest, testpb.TestService_StreamingOutputCallServer) error
	input  func(testpb.TestService_StreamingInputCallServer) error
	duplex func(testpb.TestService_FullDuplexCallServer) error
}

func (s *service) UnaryCall(ctx context.Context, r *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
	return s.unary(ctx, r)
}

func (s *service) StreamingOutputCall(r *testpb.StreamingOutputCallRequest, out testpb.TestService_StreamingOutputCallServer) error {
	return s.output(r, out)
}

func (s *service) StreamingInputCall(in testpb.TestService_StreamingInputCallServer) error {
	return s.input(in)
}

func (s *service) FullDuplexCall(both testpb.TestService_FullDuplexCallServer) error {
	return s.duplex(both)
}

// serve starts s on a port of its own and returns a client of it.
func serve(t testing.TB, s *service, opts ...grpc.ServerOption) testpb.TestServiceClient {
	t.Helper()
	server := grpc.NewServer(opts...)
	testpb.RegisterTestServiceServer(server, s)
	return testpb.NewTestServiceClient(dial(t, server))
}

// dial starts server on a port of its own and connects to it.
func dial(t testing.TB, server *grpc.Server, opts ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := server.Serve(listener); err != nil {
			t.Errorf("Serve = %v", err)
		}
	})
	opts = append(opts, grpc.WithTransportCredentials(insecure.NewCredentials()))
	conn, err := grpc.NewClient(listener.Addr().String(), opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		conn.Close()
		server.Stop() // waits for handlers
		serving.Wait()
	})
	return conn
}

// serveHTTP is serve within an HTTP server of the standard library.
func serveHTTP(t testing.TB, s *service, opts ...grpc.ServerOption) testpb.TestServiceClient {
	t.Helper()
	server := grpc.NewServer(opts...)
	testpb.RegisterTestServiceServer(server, s)
	web := httptest.NewUnstartedServer(server)
	web.Config.Protocols = new(http.Protocols)
	web.Config.Protocols.SetUnencryptedHTTP2(true)
	web.Start()
	conn, err := grpc.NewClient(web.Listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		conn.Close()
		web.Close()
	})
	return testpb.NewTestServiceClient(conn)
}

// unary is a server option with the interceptor for one rule; streaming is the same for a streaming method.
func unary(t testing.TB, method string, g *guard.Guard, opts ...interceptor.Option) grpc.ServerOption {
	t.Helper()
	i, err := interceptor.UnaryServer(interceptor.Method(method, g, opts...))
	if err != nil {
		t.Fatal(err)
	}
	return grpc.ChainUnaryInterceptor(i)
}

func streaming(t testing.TB, method string, g *guard.Guard, opts ...interceptor.Option) grpc.ServerOption {
	t.Helper()
	i, err := interceptor.StreamServer(interceptor.Method(method, g, opts...))
	if err != nil {
		t.Fatal(err)
	}
	return grpc.ChainStreamInterceptor(i)
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

// free reports whether nobody holds key.
func (l locker) free(key string) bool {
	hold, err := l.Locker.Acquire(context.Background(), lock.Request{Key: key})
	if err != nil {
		return false
	}
	return hold.Release(context.Background()) == nil
}

// failure is what a client sees of an error.
type failure struct {
	code   codes.Code
	reason string // of ErrorInfo
	delay  string // of RetryInfo
}

func failureOf(err error) failure {
	s := status.Convert(err)
	f := failure{code: s.Code()}
	for _, d := range s.Details() {
		switch d := d.(type) {
		case *errdetails.ErrorInfo:
			f.reason = d.GetReason()
			if d.GetDomain() != "latchkey" || d.GetMetadata()["guard"] != "g" {
				f.reason += " of nobody"
			}
		case *errdetails.RetryInfo:
			const half = 500 * time.Millisecond // a part of the delay is left to chance
			f.delay = ((d.GetRetryDelay().AsDuration() + half - 1) / half * half).String()
		}
	}
	return f
}

func echo(s string) *testpb.SimpleRequest {
	return &testpb.SimpleRequest{ResponseStatus: &testpb.EchoStatus{Message: s}}
}
