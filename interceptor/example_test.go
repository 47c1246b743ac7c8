package interceptor_test

import (
	"context"
	"fmt"
	"log"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/interceptor"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/memlock"
)

// A server whose health checks of one service exclude each other.
func ExampleUnaryServer() {
	locker := memlock.New()
	check := guard.Must(guard.New(locker, guard.Name("check"), guard.Key("health:#{req.Service}")))
	unary := guard.Must(interceptor.UnaryServer(
		interceptor.Method(healthpb.Health_Check_FullMethodName, check),
	))

	server := grpc.NewServer(grpc.ChainUnaryInterceptor(unary))
	services := health.NewServer()
	services.SetServingStatus("bank", healthpb.HealthCheckResponse_SERVING)
	healthpb.RegisterHealthServer(server, services)
	client := healthpb.NewHealthClient(start(server))
	defer server.Stop()

	res, err := client.Check(context.Background(), &healthpb.HealthCheckRequest{Service: "bank"})
	fmt.Println(res.GetStatus(), err)

	// Somebody else holds the lock.
	hold, err := locker.Acquire(context.Background(), lock.Request{Key: "health:bank"})
	if err != nil {
		log.Fatal(err)
	}
	_, err = client.Check(context.Background(), &healthpb.HealthCheckRequest{Service: "bank"})
	fmt.Println(status.Convert(err).Code(), status.Convert(err).Message())
	if err := hold.Release(context.Background()); err != nil {
		log.Fatal(err)
	}

	// Output:
	// SERVING <nil>
	// Aborted guard "check": its lock is held by others
}

// A stream holds its lock until it ends: here, a service can be watched by one client at a time.
func ExampleStreamServer() {
	watch := guard.Must(guard.New(memlock.New(), guard.Name("watch"), guard.Key("watch:#{req.Service}")))
	stream := guard.Must(interceptor.StreamServer(
		interceptor.Method(healthpb.Health_Watch_FullMethodName, watch),
	))

	server := grpc.NewServer(grpc.ChainStreamInterceptor(stream))
	healthpb.RegisterHealthServer(server, health.NewServer())
	client := healthpb.NewHealthClient(start(server))
	defer server.Stop()

	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for range 2 {
		stream, err := client.Watch(ctx, &healthpb.HealthCheckRequest{Service: "bank"})
		if err != nil {
			log.Fatal(err)
		}
		res, err := stream.Recv()
		fmt.Println(res.GetStatus(), status.Code(err))
	}

	// Output:
	// SERVICE_UNKNOWN OK
	// UNKNOWN Aborted
}

// start serves on a free port and connects to it.
func start(server *grpc.Server) *grpc.ClientConn {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	go func() {
		if err := server.Serve(listener); err != nil {
			log.Print(err)
		}
	}()
	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		log.Fatal(err)
	}
	return conn
}
