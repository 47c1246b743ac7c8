package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/lock"
)

// grace is how long requests may take to finish when the server ends.
const grace = 5 * time.Second

// server is the bank on its two sockets.
type server struct {
	bank         *Bank
	registry     *guard.Registry
	http         *http.Server
	grpc         *grpc.Server
	httpListener net.Listener
	grpcListener net.Listener
}

// newServer binds the addresses; serve takes it from there.
func newServer(bank *Bank, locker lock.Locker, httpAddr, grpcAddr string) (*server, error) {
	registry := guard.Must(guard.NewRegistry())
	s := &server{
		bank:     bank,
		registry: registry,
		http:     &http.Server{Handler: newHTTP(bank, locker, guard.In(registry)), ReadHeaderTimeout: 5 * time.Second},
		grpc:     newGRPC(bank, locker, guard.In(registry)),
	}
	var err error
	if s.httpListener, err = net.Listen("tcp", httpAddr); err != nil {
		return nil, fmt.Errorf("-http: %w", err)
	}
	if s.grpcListener, err = net.Listen("tcp", grpcAddr); err != nil {
		_ = s.httpListener.Close()
		return nil, fmt.Errorf("-grpc: %w", err)
	}
	return s, nil
}

// serve answers until ctx ends, and lets the requests that have begun finish, for as long as grace.
func (s *server) serve(ctx context.Context) error {
	ended := make(chan error, 2)
	var servers sync.WaitGroup
	servers.Go(func() { ended <- s.http.Serve(s.httpListener) })
	servers.Go(func() { ended <- s.grpc.Serve(s.grpcListener) })
	var err error
	select {
	case <-ctx.Done():
	case err = <-ended:
	}
	s.shutdown()
	servers.Wait()
	return err
}

func (s *server) shutdown() {
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	stop := context.AfterFunc(ctx, s.grpc.Stop)
	defer stop()
	var calls sync.WaitGroup
	calls.Go(s.grpc.GracefulStop)
	if s.http.Shutdown(ctx) != nil {
		_ = s.http.Close()
	}
	calls.Wait()
}

func (s *server) httpAddr() string { return reachable(s.httpListener.Addr()) }
func (s *server) grpcAddr() string { return reachable(s.grpcListener.Addr()) }

// reachable is an address at which clients on this machine find what listens on a.
func reachable(a net.Addr) string {
	tcp, ok := a.(*net.TCPAddr)
	if !ok || !tcp.IP.IsUnspecified() {
		return a.String()
	}
	return fmt.Sprintf("localhost:%d", tcp.Port)
}
