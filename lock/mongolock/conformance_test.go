package mongolock_test

import (
	"os"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/services"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/locktest"
	"github.com/latchkey-go/latchkey/lock/mongolock"
)

// quick has waiters ask often, so that the suite is.
var quick = mongolock.Poll(15*time.Millisecond, 10*time.Millisecond)

// Some leases of the suite last 150ms, which is little for a server in Python beside other work.
func TestConformance(t *testing.T) {
	if os.Getenv("LATCHKEY_MONGODB") == "" && !services.Required("mongodb") {
		t.Skip("needs a MongoDB, or SecantusDB on a machine that does nothing else: LATCHKEY_REQUIRE=mongodb has it run")
	}
	coll := newCollection(t)
	locktest.Run(t, func(t *testing.T) lock.Locker {
		return newLocker(t, coll, mongolock.Tokens())
	}, locktest.Kinds(lock.Exclusive, lock.Spin, lock.Fenced))
}
