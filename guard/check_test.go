package guard_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/memlock"
)

// plainOnly is a locker that says what it serves.
type plainOnly struct{ lock.Locker }

func (plainOnly) Serves(k lock.Kind) error {
	if k == lock.Exclusive {
		return nil
	}
	return fmt.Errorf("%w: %v locks", lock.ErrUnsupported, k)
}

// A kind of lock that the locker can't serve is refused at start, and not at each call.
func TestKindsThatALockerServes(t *testing.T) {
	for _, tt := range []struct {
		kind lock.Kind
		want error
	}{{lock.Exclusive, nil}, {lock.Fair, lock.ErrUnsupported}, {lock.Fenced, lock.ErrUnsupported}} {
		g, err := guard.New(plainOnly{memlock.New()}, guard.Name("n"), guard.Key("k"), guard.Kind(tt.kind))
		if err == nil {
			_, err = guard.Job(g, func(context.Context) error { return nil })
		}
		if !errors.Is(err, tt.want) || (err == nil) != (tt.want == nil) {
			t.Errorf("%v: %v, want %v", tt.kind, err, tt.want)
		}
	}
}
