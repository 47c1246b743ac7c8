package docs

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

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

/*
RLock lock = redisson.getLock("order:" + order.getShop() + ":" + order.getId());
*/
func settleOfRedisson(locker lock.Locker) (*guard.Guard, error) {
	settle, err := guard.New(locker,
		guard.Name("order.settle"),
		guard.Key("order:#{raw(req.Shop)}:#{raw(req.ID)}"),
		guard.Wait(2*time.Second),
	)
	return settle, err
}

// settleOfRedissonInJava has the same key in Java's words.
func settleOfRedissonInJava(locker lock.Locker) (*guard.Guard, error) {
	settle, err := guard.New(locker,
		guard.Name("order.settle"),
		guard.KeyFrom(spel.Redisson(`"order:" + order.getShop() + ":" + order.getId()`, spel.Params("order"))),
		guard.Wait(2*time.Second),
	)
	return settle, err
}

// Java joins texts as they are. While it holds the key of an order, a guard waits in vain, and then takes the same key.
func TestKeysOfJavaAreAsThePagesSay(t *testing.T) {
	for _, tt := range []struct {
		name string
		open func(lock.Locker) (*guard.Guard, error)
		java func(order) string
	}{
		{"lock4j", settleOfLock4j, func(o order) string { return "lock4j:order#" + o.ID + "." + o.Shop }},
		{"klock", settleOfKlock, func(o order) string { return "lock.order-" + o.ID }},
		{"getLock, a template", settleOfRedisson, func(o order) string { return "order:" + o.Shop + ":" + o.ID }},
		{"getLock, Java's words", settleOfRedissonInJava, func(o order) string { return "order:" + o.Shop + ":" + o.ID }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				locker := guardtest.New()
				g, err := tt.open(locker)
				if err != nil {
					t.Fatal(err)
				}
				settle, err := guard.Action(g, func(context.Context, order) error { return nil })
				if err != nil {
					t.Fatal(err)
				}
				for _, id := range ids {
					if !utf8.ValidString(id) {
						continue // no text of Java
					}
					o := order{ID: id, Shop: "berlin:" + id}
					java, err := locker.Acquire(t.Context(), lock.Request{Key: tt.java(o)})
					if err != nil {
						t.Fatal(err)
					}
					if err := settle(t.Context(), o); !errors.Is(err, guard.ErrBusy) {
						t.Errorf("order %q: two holders, as the guard gets in beside Java (%v)", id, err)
					}
					if err := java.Release(t.Context()); err != nil {
						t.Error(err)
					}
					if err := settle(t.Context(), o); err != nil {
						t.Errorf("order %q: %v", id, err)
					}
				}
			})
		})
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
