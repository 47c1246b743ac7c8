package main

import (
	"context"
	"testing"

	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/memlock"
)

type recorder struct {
	lock.Locker
	keys []string
}

func (r *recorder) Acquire(ctx context.Context, req lock.Request) (lock.Hold, error) {
	r.keys = append(r.keys, req.Key)
	return r.Locker.Acquire(ctx, req)
}

// All declarations say the same.
func TestDeclarationsLock(t *testing.T) {
	for _, d := range declarations {
		r := &recorder{Locker: memlock.New()}
		f, err := d.declare(r)
		if err != nil {
			t.Fatal(d.name, err)
		}
		if n, err := f(t.Context(), payment); n != 1 || err != nil {
			t.Errorf("%s: %d, %v", d.name, n, err)
		}
		if len(r.keys) != 1 || r.keys[0] != paymentKey {
			t.Errorf("%s: keys %q, want %q", d.name, r.keys, paymentKey)
		}
	}
}
