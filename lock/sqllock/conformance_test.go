package sqllock_test

import (
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/locktest"
	"github.com/latchkey-go/latchkey/lock/sqllock"
)

func TestConformance(t *testing.T) {
	for _, d := range databases() {
		t.Run(d.name, func(t *testing.T) {
			shared := d.table(t, sqllock.Fencing())
			locktest.Run(t, func(t *testing.T) lock.Locker {
				if d.on == sqllock.SQLite { // which runs in this process, and is slow with the race detector
					return d.table(t, sqllock.Fencing()).locker(t, sqllock.Fencing(), sqllock.Poll(30*time.Millisecond, 30*time.Millisecond))
				}
				return shared.locker(t, sqllock.Fencing())
			}, locktest.Kinds(lock.Exclusive, lock.Spin, lock.Fenced))
			if n := shared.held(t); n != 0 {
				t.Errorf("%d rows are still held", n)
			}
		})
	}
}
