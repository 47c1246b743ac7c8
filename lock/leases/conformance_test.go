package leases_test

import (
	"errors"
	"testing"

	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/leases"
	"github.com/latchkey-go/latchkey/lock/locktest"
)

func isBusy(err error) bool { return errors.Is(err, lock.ErrBusy) }

var allKinds = []lock.Kind{
	lock.Exclusive, lock.Fair, lock.Read, lock.Write, lock.Fenced, lock.Spin, lock.Permit,
}

func TestConformanceByPolling(t *testing.T) {
	kinds := []lock.Kind{lock.Exclusive, lock.Read, lock.Write, lock.Fenced, lock.Spin, lock.Permit}
	locktest.Run(t, func(t *testing.T) lock.Locker { return newLocker(t, newMemory(), leases.Kinds("", kinds...)) },
		locktest.Kinds(kinds...))
}

func TestConformanceInLine(t *testing.T) {
	locktest.Run(t, func(t *testing.T) lock.Locker { return newLocker(t, fifo{newMemory()}, leases.Kinds("", allKinds...)) },
		locktest.Kinds(allKinds...))
}

func newLocker(t *testing.T, s leases.Store, opts ...leases.Option) *leases.Locker {
	t.Helper()
	l, err := leases.New(s, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return l
}
