// Grpc-options sells a stock over gRPC, whose methods say in their .proto file which lock they need: see stockpb/stock.proto.
//
//	go -C examples run ./grpc-options                                   # with locks of this process
//	go -C examples run ./grpc-options --redis redis://localhost:6379     # with locks that other machines see
package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/latchkey-go/latchkey/examples/grpc-options/stockpb"
	"github.com/latchkey-go/latchkey/examples/internal/example"
	"github.com/latchkey-go/latchkey/interceptor"
	"github.com/latchkey-go/latchkey/lock"
)

func main() { example.Main(run) }

// newServer guards what the .proto file says. It would refuse to start if the file had a mistake.
func newServer(locker lock.Locker, w *warehouse) (*grpc.Server, *interceptor.Guards, error) {
	guards, err := interceptor.New(interceptor.FromOptions(locker))
	if err != nil {
		return nil, nil, err
	}
	server := grpc.NewServer(guards.ServerOptions()...)
	stockpb.RegisterStockServer(server, w)
	return server, guards, nil
}

// orders is how many customers want the last items at once.
const orders, items = 200, 50

func run(ctx context.Context, locker lock.Locker, out io.Writer) error {
	w := &warehouse{stock: map[string]int32{}}
	server, guards, err := newServer(locker, w)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "guarded methods:\n%v\n", guards)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(listener) })
	defer serving.Wait()
	defer server.GracefulStop() // waits for the handlers, and so for their locks
	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer conn.Close()

	client := stockpb.NewStockClient(conn)
	for _, try := range []struct {
		how     string
		reserve reserve
	}{{"without a guard", client.ReserveUnguarded}, {"with a guard", client.Reserve}} {
		w.fill("tea", items)
		sold, err := sell(ctx, try.reserve)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%-16s sold %d of %d items\n", try.how+":", sold, items)
	}
	return nil
}

type reserve func(context.Context, *stockpb.ReserveRequest, ...grpc.CallOption) (*stockpb.ReserveResponse, error)

// sell lets all customers order one item at once, and returns how many got one.
func sell(ctx context.Context, reserve reserve) (sold int, err error) {
	got := make(chan bool, orders)
	failed := make(chan error, orders)
	var customers sync.WaitGroup
	for range orders {
		customers.Go(func() {
			res, err := reserve(ctx, &stockpb.ReserveRequest{Lines: []*stockpb.Line{{Sku: "tea", Quantity: 1}}})
			if err != nil {
				failed <- err
			}
			got <- res.GetReserved()
		})
	}
	customers.Wait()
	close(got)
	close(failed)
	for ok := range got {
		if ok {
			sold++
		}
	}
	return sold, <-failed
}
