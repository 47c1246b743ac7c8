package main

import (
	"context"
	"maps"
	"runtime"
	"slices"
	"sync"

	"google.golang.org/grpc"

	"github.com/latchkey-go/latchkey/examples/grpc-options/stockpb"
)

// warehouse is the service. Its stock can only be read and written, one item at a time, as in a remote store.
type warehouse struct {
	stockpb.UnimplementedStockServer
	mu    sync.Mutex
	stock map[string]int32
}

func (w *warehouse) fill(sku string, n int32) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stock[sku] = n
}

func (w *warehouse) left(sku string) int32 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.stock[sku]
}

// Reserve runs under the locks of all its items.
func (w *warehouse) Reserve(_ context.Context, r *stockpb.ReserveRequest) (*stockpb.ReserveResponse, error) {
	return w.reserve(r), nil
}

// ReserveUnguarded sells one item to several customers where they meet.
func (w *warehouse) ReserveUnguarded(_ context.Context, r *stockpb.ReserveRequest) (*stockpb.ReserveResponse, error) {
	return w.reserve(r), nil
}

func (w *warehouse) reserve(r *stockpb.ReserveRequest) *stockpb.ReserveResponse {
	left := make(map[string]int32)
	for _, l := range r.GetLines() {
		if _, seen := left[l.GetSku()]; !seen {
			left[l.GetSku()] = w.left(l.GetSku())
		}
		left[l.GetSku()] -= l.GetQuantity()
		if left[l.GetSku()] < 0 {
			return &stockpb.ReserveResponse{}
		}
	}
	runtime.Gosched() // the others have their chance here
	for sku, n := range left {
		w.fill(sku, n)
	}
	return &stockpb.ReserveResponse{Reserved: true}
}

// Count runs under the lock of the warehouse to its end; stream.Context() ends if it is lost.
func (w *warehouse) Count(_ *stockpb.CountRequest, stream grpc.ServerStreamingServer[stockpb.CountResponse]) error {
	w.mu.Lock()
	stock := maps.Clone(w.stock)
	w.mu.Unlock()
	for _, sku := range slices.Sorted(maps.Keys(stock)) {
		if err := stream.Send(&stockpb.CountResponse{Sku: sku, Quantity: stock[sku]}); err != nil {
			return err
		}
	}
	return nil
}
