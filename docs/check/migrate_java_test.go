package check

import (
	"context"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/guard/guardtest"
	"github.com/latchkey-go/latchkey/keyexpr/spel"
	"github.com/latchkey-go/latchkey/lock"
)

// order is the class of the Java services in docs/migrate.
type order struct {
	ID   string `json:"id"`
	Shop string `json:"shop"`
}

/*
@Lock4j(name = "order", keys = {"#order.id", "#order.shop"}, expire = 30000, acquireTimeout = 2000)
public String settle(Order order) { … }

The same key is made by lock4j itself in keyexpr/spel/interop.
*/
func settleOfLock4j(locker lock.Locker) (*guard.Guard, error) {
	settle, err := guard.New(locker,
		guard.Name("order.settle"),
		guard.KeyFrom(spel.Lock4j("order", []string{"#order.id", "#order.shop"}, spel.Params("order"))),
		guard.Wait(2*time.Second),
	)
	return settle, err
}

/*
@Klock(name = "order", keys = {"#order.id"}, waitTime = 2, leaseTime = 30)
public String settle(Order order) { … }
*/
func settleOfKlock(locker lock.Locker) (*guard.Guard, error) {
	settle, err := guard.New(locker,
		guard.Name("order.settle"),
		guard.KeyFrom(spel.Klock("order", []string{"#order.id"}, spel.Params("order"))),
		guard.Wait(2*time.Second),
	)
	return settle, err
}

func TestKeysOfJavaAreAsThePagesSay(t *testing.T) {
	for want, open := range map[string]func(lock.Locker) (*guard.Guard, error){
		"lock4j:order#42.berlin": settleOfLock4j,
		"lock.order-42":          settleOfKlock,
	} {
		locker := guardtest.New()
		g, err := open(locker)
		if err != nil {
			t.Fatal(err)
		}
		settle, err := guard.Action(g, func(context.Context, order) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
		if err := settle(t.Context(), order{ID: "42", Shop: "berlin"}); err != nil {
			t.Error(err)
		}
		locker.WantKeys(t, want)
	}
}

/*
@SchedulerLock(name = "report", lockAtMostFor = "10m", lockAtLeastFor = "1m")
public void report() { … }
*/
func reportOfShedLock(locker lock.Locker, work func(context.Context) error) (func(context.Context) error, error) {
	report, err := guard.New(locker,
		guard.Name("report"),
		guard.Key("report"), guard.OneKey(),
		guard.Busy(guard.Skip),
		guard.HoldAtLeast(time.Minute),
	)
	if err != nil {
		return nil, err
	}
	run, err := guard.Job(report, work)
	return run, err
}

func TestJobOfShedLockRunsOnceAMinute(t *testing.T) {
	n := 0
	run, err := reportOfShedLock(guardtest.New(), func(context.Context) error { n++; return nil })
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := run(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if n != 1 {
		t.Errorf("ran %d times in a minute", n)
	}
}
