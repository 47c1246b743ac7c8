package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/interceptor"
	"github.com/latchkey-go/latchkey/middleware"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	testpb "google.golang.org/grpc/interop/grpc_testing"
)

// unguarded is what the figures call the same request without a lock.
const unguarded = "without a guard"

// http measures a request over a real connection, without a guard and with one.
func (w *worker) http(_ context.Context, j job) (r result, err error) {
	p, err := w.peer(j.Addr)
	if err != nil {
		return r, err
	}
	g, err := guard.New(p.(latchkey).Client, guard.Name("order"), guard.Key("order:#{path.id}"), guard.Wait(time.Second))
	if err != nil {
		return r, err
	}
	wrap, err := middleware.New(g, middleware.Pattern("/guarded/{id}"))
	if err != nil {
		return r, err
	}
	nothing := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	mux := http.NewServeMux()
	mux.Handle("POST /plain/{id}", nothing)
	mux.Handle("POST /guarded/{id}", wrap(nothing))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return r, err
	}
	server := &http.Server{Handler: mux}
	go func() { _ = server.Serve(l) }() // until Close
	defer server.Close()
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	return both(j, func(path string) error { return post(client, fmt.Sprintf("http://%s/%s/7", l.Addr(), path)) })
}

func post(client *http.Client, url string) error {
	answer, err := client.Post(url, "", nil)
	if err != nil {
		return err
	}
	if answer.StatusCode != http.StatusNoContent {
		err = fmt.Errorf("%s answers %s", url, answer.Status)
	}
	_ = answer.Body.Close()
	return err
}

// both measures f for a call without a guard and for one with it.
func both(j job, f func(path string) error) (r result, err error) {
	for _, way := range []struct{ path, name string }{{"plain", unguarded}, {"guarded", we}} {
		ns, err := timed(j, func() error { return f(way.path) })
		if err != nil {
			return r, err
		}
		r.Named = append(r.Named, measure{way.name, ns})
	}
	return r, nil
}

// service answers at once.
type service struct {
	testpb.UnimplementedTestServiceServer
}

func (service) UnaryCall(context.Context, *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
	return &testpb.SimpleResponse{}, nil
}

// grpc measures a unary call over a real connection, without an interceptor and with a guard in one.
func (w *worker) grpc(ctx context.Context, j job) (r result, err error) {
	p, err := w.peer(j.Addr)
	if err != nil {
		return r, err
	}
	g, err := guard.New(p.(latchkey).Client, guard.Name("order"), guard.Key("order:#{req.ResponseStatus.Message}"), guard.Wait(time.Second))
	if err != nil {
		return r, err
	}
	i, err := interceptor.UnaryServer(interceptor.Method(testpb.TestService_UnaryCall_FullMethodName, g))
	if err != nil {
		return r, err
	}
	clients := map[string]testpb.TestServiceClient{}
	for path, options := range map[string][]grpc.ServerOption{"plain": nil, "guarded": {grpc.UnaryInterceptor(i)}} {
		c, stop, err := dialService(options)
		if err != nil {
			return r, err
		}
		defer stop()
		clients[path] = c
	}
	request := &testpb.SimpleRequest{ResponseStatus: &testpb.EchoStatus{Message: "7"}}
	return both(j, func(path string) error {
		_, err := clients[path].UnaryCall(ctx, request)
		return err
	})
}

// dialService starts the service and returns a client of it.
func dialService(options []grpc.ServerOption) (c testpb.TestServiceClient, stop func(), err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	server := grpc.NewServer(options...)
	testpb.RegisterTestServiceServer(server, service{})
	go func() { _ = server.Serve(l) }() // until Stop
	conn, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		server.Stop()
		return nil, nil, err
	}
	return testpb.NewTestServiceClient(conn), func() {
		_ = conn.Close()
		server.Stop()
	}, nil
}
