package memlock

import (
	"context"
	"testing"

	"github.com/latchkey-go/latchkey/lock"
)

// BenchmarkAcquireRelease is the cost of a lock that nobody else wants.
func BenchmarkAcquireRelease(b *testing.B) {
	outer, err := New().Acquire(context.Background(), lock.Request{Key: "cart:7"})
	if err != nil {
		b.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		ctx  context.Context
		r    lock.Request
	}{
		{"Fresh", context.Background(), lock.Request{Key: "order:42"}},
		{"Nested", outer.Context(), lock.Request{Key: "order:42"}},
		{"Cancellable", b.Context(), lock.Request{Key: "order:42"}},
		{"Lease", context.Background(), lock.Request{Key: "order:42", Lease: 1e12}},
	} {
		b.Run(tt.name, func(b *testing.B) {
			b.ReportAllocs()
			l := New()
			for b.Loop() {
				h, err := l.Acquire(tt.ctx, tt.r)
				if err != nil {
					b.Fatal(err)
				}
				if err := h.Release(tt.ctx); err != nil {
					b.Fatal(err)
				}
			}
			if len(l.keys) != 0 {
				b.Errorf("%d keys left", len(l.keys))
			}
		})
	}
}
