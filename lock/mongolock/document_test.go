package mongolock_test

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/mongolock"
)

// clocks are the two ways in which the server's time is used.
var clocks = []struct {
	name string
	opts []mongolock.Option
}{
	{"$$NOW", nil},
	{"hello", []mongolock.Option{mongolock.HelloClock()}},
}

// forEachClock runs a test with a collection of its own for both.
func forEachClock(t *testing.T, test func(t *testing.T, coll *mongo.Collection, opts []mongolock.Option)) {
	t.Parallel()
	for _, c := range clocks {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			test(t, newCollection(t), append([]mongolock.Option{quick}, c.opts...))
		})
	}
}

func TestDocumentIsShedLocks(t *testing.T) {
	forEachClock(t, func(t *testing.T, coll *mongo.Collection, opts []mongolock.Option) {
		hold, err := newLocker(t, coll, opts...).Acquire(t.Context(), lock.Request{Key: "$order:1", Lease: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		raw, err := coll.FindOne(t.Context(), bson.D{}).Raw()
		if err != nil {
			t.Fatal(err)
		}
		elements, err := raw.Elements()
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]bson.Type{"_id": bson.TypeString, "lockUntil": bson.TypeDateTime, "lockedAt": bson.TypeDateTime, "lockedBy": bson.TypeString}
		for _, e := range elements {
			if e.Value().Type != want[e.Key()] {
				t.Errorf("%s is a %v", e.Key(), e.Value().Type)
			}
			delete(want, e.Key())
		}
		if len(want) > 0 {
			t.Errorf("the document lacks %v", want)
		}
		if id := raw.Lookup("_id").StringValue(); id != "$order:1" {
			t.Errorf("_id is %q", id)
		}
		host, _ := os.Hostname()
		if by := raw.Lookup("lockedBy").StringValue(); !strings.HasPrefix(by, host+"/") {
			t.Errorf("lockedBy is %q", by)
		}
		if lease := raw.Lookup("lockUntil").Time().Sub(raw.Lookup("lockedAt").Time()); lease != time.Minute+time.Millisecond {
			t.Errorf("the lease is %v", lease)
		}
		if err := hold.Release(t.Context()); err != nil {
			t.Error(err)
		}
		if n := count(t, coll); n != 0 {
			t.Errorf("%d documents are left behind", n)
		}
	})
}

// Peers leave a document for ever, and one that lasts if they crash.
func TestDocumentsThatPeersHaveLeft(t *testing.T) {
	forEachClock(t, func(t *testing.T, coll *mongo.Collection, opts []mongolock.Option) {
		locker := newLocker(t, coll, opts...)
		now := time.Now()
		for key, until := range map[string]time.Time{"free": now.Add(-time.Hour), "crashed": now.Add(time.Hour)} {
			d := bson.D{{Key: "_id", Value: key}, {Key: "lockUntil", Value: until}, {Key: "lockedAt", Value: now.Add(-2 * time.Hour)},
				{Key: "lockedBy", Value: "java-host"}}
			if _, err := coll.InsertOne(t.Context(), d); err != nil {
				t.Fatal(err)
			}
		}
		hold, err := locker.Acquire(t.Context(), lock.Request{Key: "free"})
		if err != nil {
			t.Fatal(err)
		}
		if err := hold.Release(t.Context()); err != nil {
			t.Error(err)
		}
		_, err = locker.Acquire(t.Context(), lock.Request{Key: "crashed"})
		busy, ok := errors.AsType[*lock.BusyError](err)
		if !ok || busy.Remaining < 59*time.Minute || busy.Remaining > 61*time.Minute {
			t.Errorf("Acquire() = %v, want busy for an hour", err)
		}
		if err := locker.Peek(t.Context(), lock.Request{Key: "crashed"}); !errors.Is(err, lock.ErrBusy) {
			t.Errorf("Peek() = %v, want ErrBusy", err)
		}
	})
}

func TestDocumentsThatAreNoLocksAreRefusedAndLeftAlone(t *testing.T) {
	forEachClock(t, func(t *testing.T, coll *mongo.Collection, opts []mongolock.Option) {
		locker := newLocker(t, coll, opts...)
		for _, d := range []bson.D{
			{{Key: "_id", Value: "no date"}, {Key: "name", Value: "Ann"}},
			{{Key: "_id", Value: "text"}, {Key: "lockUntil", Value: "2020-01-01"}},
			{{Key: "_id", Value: "number"}, {Key: "lockUntil", Value: int64(1)}, {Key: "lockedBy", Value: 7}},
		} {
			if _, err := coll.InsertOne(t.Context(), d); err != nil {
				t.Fatal(err)
			}
			key := d[0].Value.(string)
			if _, err := locker.Acquire(t.Context(), lock.Request{Key: key, Wait: time.Minute}); !errors.Is(err, lock.ErrRefused) {
				t.Errorf("Acquire(%q) = %v, want ErrRefused", key, err)
			}
			if err := locker.Peek(t.Context(), lock.Request{Key: key}); !errors.Is(err, lock.ErrRefused) {
				t.Errorf("Peek(%q) = %v, want ErrRefused", key, err)
			}
			var after bson.D
			if err := coll.FindOne(t.Context(), bson.D{{Key: "_id", Value: key}}).Decode(&after); err != nil || len(after) != len(d) {
				t.Errorf("%v has become %v, %v", d, after, err)
			}
		}
	})
}

func TestTokensGoOnAfterPeersAndRestarts(t *testing.T) {
	forEachClock(t, func(t *testing.T, coll *mongo.Collection, opts []mongolock.Option) {
		last := int64(0)
		for range 3 {
			locker := newLocker(t, coll, append(opts, mongolock.Tokens())...)
			hold, err := locker.Acquire(t.Context(), lock.Request{Key: "k", Kind: lock.Fenced})
			if err != nil {
				t.Fatal(err)
			}
			token := hold.(interface{ Token() int64 }).Token()
			if token <= last {
				t.Errorf("token %d after %d", token, last)
			}
			last = token
			if err := hold.Release(t.Context()); err != nil {
				t.Error(err)
			}
			plain, err := newLocker(t, coll, opts...).Acquire(t.Context(), lock.Request{Key: "k"}) // does not count, and must not remove the count
			if err != nil {
				t.Fatal(err)
			}
			if err := plain.Release(t.Context()); err != nil {
				t.Error(err)
			}
		}
		if n := count(t, coll); n != 1 {
			t.Errorf("there are %d documents, want the one with the token", n)
		}
		if _, err := coll.UpdateOne(t.Context(), bson.D{}, bson.D{{Key: "$set", Value: bson.D{{Key: "token", Value: "seven"}}}}); err != nil {
			t.Fatal(err)
		}
		locker := newLocker(t, coll, append(opts, mongolock.Tokens())...)
		if _, err := locker.Acquire(t.Context(), lock.Request{Key: "k", Kind: lock.Fenced}); !errors.Is(err, lock.ErrRefused) {
			t.Errorf("Acquire() with the token \"seven\" = %v, want ErrRefused", err)
		}
	})
}

func TestFencedNeedsTokens(t *testing.T) {
	t.Parallel()
	_, err := newLocker(t, newCollection(t)).Acquire(t.Context(), lock.Request{Key: "k", Kind: lock.Fenced})
	if !errors.Is(err, lock.ErrUnsupported) || !strings.Contains(err.Error(), "mongolock.Tokens") {
		t.Errorf("Acquire() = %v, want ErrUnsupported and the option's name", err)
	}
}

// Somebody who changes or removes the document takes the lock away: a ShedLock that unlocks after its own lease does.
func TestLockThatSomebodyRemovesIsLost(t *testing.T) {
	forEachClock(t, func(t *testing.T, coll *mongo.Collection, opts []mongolock.Option) {
		locker := newLocker(t, coll, append(opts, mongolock.Watchdog(3*time.Second))...)
		id := bson.D{{Key: "_id", Value: "k"}}
		past := bson.D{{Key: "$set", Value: bson.D{{Key: "lockUntil", Value: time.Now().Add(-time.Hour)}}}}
		for name, remove := range map[string]func() error{
			"unlock": func() error { _, err := coll.UpdateOne(t.Context(), id, past); return err },
			"delete": func() error { _, err := coll.DeleteOne(t.Context(), id); return err },
		} {
			hold, err := locker.Acquire(t.Context(), lock.Request{Key: "k"})
			if err != nil {
				t.Fatal(err)
			}
			if err := remove(); err != nil {
				t.Fatal(err)
			}
			<-hold.Context().Done()
			if err := hold.Release(t.Context()); !errors.Is(err, lock.ErrLost) {
				t.Errorf("%s: Release() = %v, want ErrLost", name, err)
			}
			hold, err = locker.Acquire(t.Context(), lock.Request{Key: "k", Lease: time.Minute})
			if err != nil {
				t.Fatal(err)
			}
			if err := remove(); err != nil {
				t.Fatal(err)
			}
			if err := hold.Release(t.Context()); !errors.Is(err, lock.ErrLost) {
				t.Errorf("%s: Release() at once = %v, want ErrLost", name, err)
			}
		}
		if n := count(t, coll); n != 0 {
			t.Errorf("%d documents are left behind", n)
		}
	})
}

// A caller in a transaction must not have its lock in there: nobody would see it.
func TestLockIsOutsideOfTheCallersTransaction(t *testing.T) {
	t.Parallel()
	coll := newCollection(t)
	session, err := coll.Database().Client().StartSession()
	if err != nil {
		t.Fatal(err)
	}
	defer session.EndSession(t.Context())
	if err := session.StartTransaction(options.Transaction()); err != nil {
		t.Fatal(err)
	}
	ctx := mongo.NewSessionContext(t.Context(), session)
	locker := newLocker(t, coll)
	hold, err := locker.Acquire(ctx, lock.Request{Key: "k"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := newLocker(t, coll).Acquire(t.Context(), lock.Request{Key: "k"}); !errors.Is(err, lock.ErrBusy) {
		t.Errorf("Acquire() = %v, want ErrBusy", err)
	}
	if err := locker.Peek(ctx, lock.Request{Key: "other"}); err != nil {
		t.Errorf("Peek() = %v", err)
	}
	if err := session.AbortTransaction(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := newLocker(t, coll).Acquire(t.Context(), lock.Request{Key: "k"}); !errors.Is(err, lock.ErrBusy) {
		t.Errorf("Acquire() after the transaction = %v, want ErrBusy", err)
	}
	if err := hold.Release(ctx); err != nil {
		t.Error(err)
	}
}

func TestKeysOfAllSortsHaveDocumentsOfTheirOwn(t *testing.T) {
	forEachClock(t, func(t *testing.T, coll *mongo.Collection, opts []mongolock.Option) {
		locker := newLocker(t, coll, opts...)
		keys := []string{"a", "A", "a ", "a\x00", "a\x00b", "$a", "$$NOW", "{}", "\xff", "\xfe", "latchkey:base64:_w", "é", "e\u0301",
			strings.Repeat("x", 5000), strings.Repeat("x", 5001)}
		for _, key := range keys {
			if _, err := locker.Acquire(t.Context(), lock.Request{Key: key, Lease: time.Minute}); err != nil {
				t.Errorf("Acquire(%.20q) = %v", key, err)
			}
		}
		if n := count(t, coll); n != int64(len(keys)) {
			t.Errorf("%d keys have %d documents", len(keys), n)
		}
	})
}

// A clock that is ahead by the slack must not get a kept lock early, as little as a held one.
func TestSlackIsInWhatIsKept(t *testing.T) {
	forEachClock(t, func(t *testing.T, coll *mongo.Collection, opts []mongolock.Option) {
		const slack = time.Hour
		hold, err := newLocker(t, coll, append(opts, mongolock.Slack(slack))...).Acquire(t.Context(), lock.Request{Key: "job"})
		if err != nil {
			t.Fatal(err)
		}
		if err := hold.(keeper).Keep(t.Context(), time.Second); err != nil {
			t.Fatal(err)
		}
		var doc struct {
			LockedAt  time.Time `bson:"lockedAt"`
			LockUntil time.Time `bson:"lockUntil"`
		}
		if err := coll.FindOne(t.Context(), bson.D{}).Decode(&doc); err != nil {
			t.Fatal(err)
		}
		if kept := doc.LockUntil.Sub(doc.LockedAt); kept < slack {
			t.Errorf("the document says %v, want a second and the slack of %v", kept, slack)
		}
		other, err := newLocker(t, coll, opts...).Acquire(t.Context(), lock.Request{Key: "job", Wait: 30 * time.Second})
		if err != nil {
			t.Fatalf("after a second: %v, want the lock, as its process is there to end it", err)
		}
		if err := other.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
