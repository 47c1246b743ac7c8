package redisson_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/redisson"
)

// A search that rests takes its share of the server's time and no more, whatever it finds, and its rests end with its context.
func TestSearchRests(t *testing.T) {
	s := redistest.Start(t)
	c := newClient(t, s)
	keys := manyLocks(t, s.Client(t), 10_000)
	s.Fill(t, 30_000)
	for _, tt := range []struct {
		name   string
		search func(ctx context.Context, opt redisson.SearchOption) error
	}{
		{"Objects", func(ctx context.Context, opt redisson.SearchOption) (err error) {
			n := 0
			for _, e := range c.Objects(ctx, "", opt) {
				n, err = n+1, errors.Join(err, e)
			}
			if err == nil && n != len(keys) {
				t.Errorf("it finds %d of %d locks", n, len(keys))
			}
			return err
		}},
		{"InspectKeys", func(ctx context.Context, opt redisson.SearchOption) (err error) {
			for _, e := range c.InspectKeys(ctx, keys, opt) {
				err = errors.Join(err, e)
			}
			return err
		}},
	} {
		share := map[float64]float64{}
		for _, asked := range []float64{0.2, 1} {
			before, begun := serverCPU(t, s), time.Now()
			check(t, tt.search(t.Context(), redisson.Rest(asked)))
			share[asked] = float64(serverCPU(t, s)-before) / float64(time.Since(begun))
		}
		t.Logf("%s: %.2f", tt.name, share)
		if share[0.2] > 0.3 || share[1] < share[0.2]*1.2 {
			t.Errorf("%s: the server is busy for %.2f of the time", tt.name, share)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		begun := time.Now()
		err := tt.search(ctx, redisson.Rest(0.0001))
		cancel()
		if took := time.Since(begun); !errors.Is(err, context.DeadlineExceeded) || took > 2*time.Second {
			t.Errorf("%s ends after %v with %v, want at the end of its context", tt.name, took, err)
		}
	}
}
