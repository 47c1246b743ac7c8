package mongolock_test

import (
	"crypto/rand"
	"errors"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/leases"
	"github.com/latchkey-go/latchkey/lock/mongolock"
)

// A driver may send a command twice, and the second one may arrive after newer ones.
func TestRepeatedQuestionsDoNoHarm(t *testing.T) {
	forEachClock(t, func(t *testing.T, coll *mongo.Collection, opts []mongolock.Option) {
		s := mongolock.StoreOf(newLocker(t, coll, opts...))
		ours, theirs := &leases.Entry{Key: "k", ID: rand.Text()}, &leases.Entry{Key: "k", ID: rand.Text()}
		rest := func() time.Duration {
			t.Helper()
			raw, err := coll.FindOne(t.Context(), bson.D{}).Raw()
			if err != nil {
				t.Fatal(err)
			}
			return time.Until(raw.Lookup("lockUntil").Time())
		}
		for _, d := range []time.Duration{time.Minute, 10 * time.Minute, time.Second} {
			if _, err := s.Take(t.Context(), ours, d); err != nil {
				t.Fatalf("Take() for %v = %v", d, err)
			}
		}
		if d := rest(); d < 9*time.Minute {
			t.Errorf("a Take that is late leaves %v of 10m", d)
		}
		if _, err := s.Take(t.Context(), theirs, time.Minute); !errors.Is(err, lock.ErrBusy) {
			t.Errorf("Take() of another one = %v, want ErrBusy", err)
		}
		if _, err := s.Extend(t.Context(), ours, 20*time.Minute); err != nil || rest() < 19*time.Minute {
			t.Errorf("Extend() = %v, and leaves %v of 20m", err, rest())
		}
		if _, err := s.Extend(t.Context(), ours, time.Second); err != nil || rest() < 19*time.Minute {
			t.Errorf("Extend() for less = %v, and leaves %v of 20m", err, rest())
		}
		if err := s.Free(t.Context(), ours, time.Minute); err != nil || rest() > 2*time.Minute {
			t.Errorf("Free() but for a minute = %v, and leaves %v", err, rest())
		}
		if err := s.Free(t.Context(), theirs, 0); !errors.Is(err, lock.ErrNotHeld) || rest() < 0 {
			t.Errorf("Free() by another one = %v, want ErrNotHeld", err)
		}
		for _, want := range []error{nil, lock.ErrNotHeld} {
			if err := s.Free(t.Context(), ours, 0); !errors.Is(err, want) {
				t.Errorf("Free() = %v, want %v", err, want)
			}
		}
		if _, err := s.Extend(t.Context(), ours, time.Minute); !errors.Is(err, lock.ErrNotHeld) {
			t.Errorf("Extend() of what was freed = %v, want ErrNotHeld", err)
		}
		if n := count(t, coll); n != 0 {
			t.Errorf("%d documents are left behind", n)
		}
	})
}
