package main

import (
	"context"
	"net"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/latchkey-go/latchkey/examples/grpc-options/stockpb"
	"github.com/latchkey-go/latchkey/examples/internal/exampletest"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/memlock"
)

// Customers who meet get no item twice, with locks of Redis.
func TestNothingIsSoldTwice(t *testing.T) {
	exampletest.Prints(t, run, "with a guard:    sold 50 of 50 items",
		"Stock/Count  count:#{req.warehouse_id}; name=stock.count; max-hold=1m", "Stock/Reserve  ")
}

// The methods take the locks that their options name: of each item, all or none, and of the warehouse.
func TestLocksOfTheOptions(t *testing.T) {
	locker := memlock.New()
	server, _, err := newServer(locker, &warehouse{stock: map[string]int32{"tea": 5, "jam": 5}})
	if err != nil {
		t.Fatal(err)
	}
	listener := bufconn.Listen(1 << 20)
	go func() { _ = server.Serve(listener) }()
	defer server.Stop()
	conn, err := grpc.NewClient("passthrough:stock", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	client := stockpb.NewStockClient(conn)

	hold, err := locker.Acquire(t.Context(), lock.Request{Key: "count:1"})
	if err != nil {
		t.Fatal(err)
	}
	for warehouse, want := range map[string]codes.Code{"1": codes.Aborted, "2": codes.OK, "": codes.InvalidArgument} {
		stream, err := client.Count(t.Context(), &stockpb.CountRequest{WarehouseId: warehouse})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := stream.Recv(); status.Code(err) != want {
			t.Errorf("Count of warehouse %q = %v, want %v", warehouse, err, want)
		}
	}
	if err := hold.Release(t.Context()); err != nil {
		t.Error(err)
	}
	for _, tt := range []struct {
		lines []*stockpb.Line
		want  bool
	}{
		{[]*stockpb.Line{{Sku: "tea", Quantity: 3}, {Sku: "jam", Quantity: 3}}, true},
		{[]*stockpb.Line{{Sku: "tea", Quantity: 1}, {Sku: "jam", Quantity: 3}}, false},
		{[]*stockpb.Line{{Sku: "tea", Quantity: 2}}, true},
	} {
		res, err := client.Reserve(t.Context(), &stockpb.ReserveRequest{Lines: tt.lines})
		if err != nil || res.GetReserved() != tt.want {
			t.Errorf("Reserve(%v) = %v, %v, want %v", tt.lines, res, err, tt.want)
		}
	}
}
