package zklock_test

import (
	"testing"

	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/locktest"
)

func TestLockerKeepsItsPromises(t *testing.T) {
	s := connect(t, server(t).Addr)
	locktest.Run(t, func(t *testing.T) lock.Locker { return newLocker(t, s) },
		locktest.Kinds(lock.Exclusive, lock.Fair, lock.Fenced, lock.Read, lock.Write))
}
