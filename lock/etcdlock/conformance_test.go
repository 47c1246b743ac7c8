package etcdlock_test

import (
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/etcdlock"
	"github.com/latchkey-go/latchkey/lock/locktest"
)

var kinds = []lock.Kind{lock.Exclusive, lock.Fair, lock.Read, lock.Write, lock.Fenced, lock.Permit}

func TestConformance(t *testing.T) {
	client := dial(t, single(t).Endpoints()...)
	locktest.Run(t, func(t *testing.T) lock.Locker {
		return locker(t, client, etcdlock.Watchdog(5*time.Second))
	}, locktest.Kinds(kinds...))
}
