// Command grpc serves a bank whose transfers are made one at a time for each account. docs/start/grpc.md walks through it.
//
//	go -C examples run ./start/grpc              # serve
//	go -C examples run ./start/grpc a b 100      # transfer 100 cents from a to b
package main

import (
	"context"
	"fmt"
	"log"
	"net"
	"os"
	"os/signal"
	"strconv"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/latchkey-go/latchkey/examples/quickstart/bankpb"
	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/interceptor"
	"github.com/latchkey-go/latchkey/redisson"
)

const address = "localhost:8080"

// bank is the service.
type bank struct{ bankpb.UnimplementedBankServer }

// Transfer runs under the locks of both accounts. The context ends if one is lost.
func (bank) Transfer(ctx context.Context, r *bankpb.TransferRequest) (*bankpb.TransferResponse, error) {
	select {
	case <-time.After(2 * time.Second): // the work
		return &bankpb.TransferResponse{}, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func serve() {
	client := guard.Must(redisson.Open("redis://localhost:6379"))
	transfer := guard.Must(guard.New(client,
		guard.Name("transfer"),
		guard.Key("account:#{[req.from, req.to]}"), // two locks, taken in one order by all
		guard.Wait(500*time.Millisecond),
		guard.MaxHold(time.Minute),
	))
	guards := guard.Must(interceptor.New(interceptor.Method(bankpb.Bank_Transfer_FullMethodName, transfer)))

	server := grpc.NewServer(guards.ServerOptions()...)
	bankpb.RegisterBankServer(server, bank{})
	interrupted, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	context.AfterFunc(interrupted, server.GracefulStop) // waits for the handlers, and so for their locks
	if err := server.Serve(guard.Must(net.Listen("tcp", address))); err != nil {
		log.Print(err)
	}
	_ = client.Close()
}

func main() {
	if len(os.Args) != 4 {
		serve()
		return
	}
	conn := guard.Must(grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials())))
	cents := guard.Must(strconv.ParseInt(os.Args[3], 10, 64))
	_, err := bankpb.NewBankClient(conn).Transfer(context.Background(), &bankpb.TransferRequest{From: os.Args[1], To: os.Args[2], Cents: cents})
	fmt.Println("transfer:", err)
}
