package memlock_test

import (
	"testing"

	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/locktest"
	"github.com/latchkey-go/latchkey/lock/memlock"
)

func TestConformance(t *testing.T) {
	locktest.Run(t, func(*testing.T) lock.Locker { return memlock.New() },
		locktest.Kinds(lock.Exclusive, lock.Fair, lock.Read, lock.Write, lock.Fenced, lock.Spin, lock.Permit))
}
