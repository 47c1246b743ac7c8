package mongolock_test

import (
	"context"
	"errors"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"encoding/binary"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/latchkey-go/latchkey/internal/services"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/mongolock"
)

// fail has the server fail the commands as data says, the next times, or until the test ends if times is 0.
func fail(tb testing.TB, coll *mongo.Collection, times int, data bson.D) {
	tb.Helper()
	mode := any("alwaysOn")
	if times > 0 {
		mode = bson.D{{Key: "times", Value: times}}
	}
	set := bson.D{{Key: "configureFailPoint", Value: "failCommand"}, {Key: "mode", Value: mode}, {Key: "data", Value: data}}
	if err := coll.Database().Client().Database("admin").RunCommand(context.Background(), set).Err(); err != nil {
		tb.Fatal(err)
	}
}

func on(command string, more ...bson.E) bson.D {
	return append(bson.D{{Key: "failCommands", Value: bson.A{command}}}, more...)
}

// polled has the driver ask a server often how it is: a failpoint does not change that, so that it would hear of the end of a pretended
// election after 10 seconds only.
func polled(s *services.Server) string {
	return uriOf(s.Addr) + "&serverMonitoringMode=poll&heartbeatFrequencyMS=500"
}

// The primary steps down before the command, the connection breaks before it, or a majority does not confirm it.
func TestAcquireWhileThePrimaryChanges(t *testing.T) {
	t.Parallel()
	s := ownServer(t, durable()...)
	coll := collectionAt(t, uriOf(s.Addr))
	locker := newLocker(t, collectionOf(t, polled(s), coll.Name()), quick)
	for name, data := range map[string]bson.D{
		"not primary":             on("findAndModify", bson.E{Key: "errorCode", Value: 10107}),
		"interrupted by stepdown": on("findAndModify", bson.E{Key: "errorCode", Value: 11602}),
		"shut down":               on("findAndModify", bson.E{Key: "errorCode", Value: 91}),
		"closed":                  on("findAndModify", bson.E{Key: "closeConnection", Value: true}),
		"no majority": on("findAndModify", bson.E{Key: "writeConcernError", Value: bson.D{{Key: "code", Value: 64},
			{Key: "errmsg", Value: "waiting for replication timed out"}}}),
	} {
		t.Run(name, func(t *testing.T) {
			fail(t, coll, 0, data)
			if _, err := locker.Acquire(t.Context(), lock.Request{Key: "k"}); !isOutage(err) {
				t.Errorf("Acquire() = %v, want an outage", err)
			}
			gone(t, coll) // also if the command was done
			fail(t, coll, 3, data)
			hold, err := locker.Acquire(t.Context(), lock.Request{Key: "k", Wait: 20 * time.Second})
			if err != nil {
				t.Fatalf("Acquire() with a later primary = %v", err)
			}
			if err := hold.Release(t.Context()); err != nil {
				t.Error(err)
			}
			gone(t, coll)
		})
	}
}

func TestRenewalsSurviveAnElection(t *testing.T) {
	t.Parallel()
	s := ownServer(t, durable()...)
	coll := collectionAt(t, uriOf(s.Addr))
	const watchdog = 6 * time.Second
	locker := newLocker(t, collectionOf(t, polled(s), coll.Name()), mongolock.Watchdog(watchdog))
	hold, err := locker.Acquire(t.Context(), lock.Request{Key: "k"})
	if err != nil {
		t.Fatal(err)
	}
	fail(t, coll, 3, on("update", bson.E{Key: "errorCode", Value: 10107}))
	if _, err := newLocker(t, coll, quick).Acquire(t.Context(), lock.Request{Key: "k", Wait: 2 * watchdog}); !errors.Is(err, lock.ErrBusy) {
		t.Errorf("Acquire() = %v, want ErrBusy", err)
	}
	if err := hold.Release(t.Context()); err != nil {
		t.Error(err)
	}
	gone(t, coll)
}

// A command that hangs in the server is done after its Acquire has given up.
func TestTakeThatIsDoneTooLateIsFreed(t *testing.T) {
	t.Parallel()
	s := ownServer(t, durable()...)
	coll := collectionAt(t, uriOf(s.Addr))
	locker := newLocker(t, collectionOf(t, uriOf(s.Addr), coll.Name()), mongolock.Timeout(500*time.Millisecond))
	hold, err := locker.Acquire(t.Context(), lock.Request{Key: "warm", Wait: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	fail(t, coll, 1, on("findAndModify", bson.E{Key: "blockConnection", Value: true}, bson.E{Key: "blockTimeMS", Value: 2000}))
	if _, err := locker.Acquire(t.Context(), lock.Request{Key: "k"}); !isOutage(err) {
		t.Errorf("Acquire() = %v, want an outage", err)
	}
	for end := time.Now().Add(4 * time.Second); time.Now().Before(end) && count(t, coll) < 2; { // it may be done, and freed, between two looks
		time.Sleep(time.Millisecond)
	}
	if err := hold.Release(t.Context()); err != nil {
		t.Error(err)
	}
	gone(t, coll)
}

func TestWithoutPermission(t *testing.T) {
	t.Parallel()
	placeholder := "--log-level=ERROR"
	if _, isMongod, _ := services.MongoProgram(); isMongod {
		placeholder = "--quiet"
	}
	args := append([]string{placeholder}, durable()...)
	s := ownServer(t, args...)
	admin := connect(t, uriOf(s.Addr)).Database("admin")
	for name, role := range map[string]any{
		"root":   "root",
		"reader": bson.D{{Key: "role", Value: "read"}, {Key: "db", Value: database}},
		"writer": bson.D{{Key: "role", Value: "readWrite"}, {Key: "db", Value: database}},
	} {
		user := bson.D{{Key: "createUser", Value: name}, {Key: "pwd", Value: "secret"}, {Key: "roles", Value: bson.A{role}}}
		if err := admin.RunCommand(t.Context(), user).Err(); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.End(); err != nil {
		t.Fatal(err)
	}
	args[0] = "--auth" // of the next Run
	if err := s.Run(); err != nil {
		t.Fatal(err)
	}
	for user, refused := range map[string]bool{"": true, "reader:secret@": true, "writer:wrong@": true, "writer:secret@": false} {
		locker := newLocker(t, collectionOf(t, "mongodb://"+user+s.Addr+"/?directConnection=true", "locks"))
		start := time.Now()
		hold, err := locker.Acquire(t.Context(), lock.Request{Key: "k", Wait: time.Minute})
		if errors.Is(err, lock.ErrRefused) != refused || err != nil && !refused {
			t.Errorf("%q: Acquire() = %v, want ErrRefused: %v", user, err, refused)
		}
		if took := time.Since(start); took > 10*time.Second {
			t.Errorf("%q: Acquire() took %v", user, took)
		}
		if err := locker.Check(t.Context()); errors.Is(err, lock.ErrRefused) != refused {
			t.Errorf("%q: Check() = %v, want ErrRefused: %v", user, err, refused)
		}
		if hold != nil {
			if err := hold.Release(t.Context()); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestCheckKnowsCollectionsThatWontDo(t *testing.T) {
	forEachClock(t, func(t *testing.T, coll *mongo.Collection, opts []mongolock.Option) {
		db := coll.Database()
		if err := newLocker(t, coll, opts...).Check(t.Context()); err != nil {
			t.Errorf("Check() without a collection = %v", err)
		}
		for name, how := range map[string]*options.CreateCollectionOptionsBuilder{
			"capped":    options.CreateCollection().SetCapped(true).SetSizeInBytes(4096),
			"collation": options.CreateCollection().SetCollation(&options.Collation{Locale: "en", Strength: 1}),
		} {
			bad := db.Collection(coll.Name() + "_" + name)
			if err := db.CreateCollection(t.Context(), bad.Name(), how); err != nil {
				t.Fatal(err)
			}
			defer func() { _ = bad.Drop(context.Background()) }()
			if err := newLocker(t, bad, opts...).Check(t.Context()); !errors.Is(err, lock.ErrRefused) || !strings.Contains(err.Error(), name) {
				t.Errorf("Check() = %v, want ErrRefused and %q", err, name)
			}
		}
		if _, err := coll.Indexes().CreateOne(t.Context(), mongo.IndexModel{Keys: bson.D{{Key: "lockUntil", Value: 1}},
			Options: options.Index().SetExpireAfterSeconds(60)}); err != nil {
			t.Fatal(err)
		}
		if err := newLocker(t, coll, opts...).Check(t.Context()); err != nil {
			t.Errorf("Check() with an index that removes old documents = %v", err)
		}
		if err := newLocker(t, coll, append(opts, mongolock.Tokens())...).Check(t.Context()); !errors.Is(err, lock.ErrRefused) {
			t.Errorf("Check() with tokens that go by themselves = %v, want ErrRefused", err)
		}
		if _, err := coll.Indexes().CreateOne(t.Context(), mongo.IndexModel{Keys: bson.D{{Key: "tenant", Value: 1}},
			Options: options.Index().SetUnique(true)}); err != nil {
			t.Fatal(err)
		}
		locker := newLocker(t, coll, opts...)
		if err := locker.Check(t.Context()); !errors.Is(err, lock.ErrRefused) {
			t.Errorf("Check() with a unique index = %v, want ErrRefused", err)
		}
		if _, err := locker.Acquire(t.Context(), lock.Request{Key: "first", Lease: time.Minute}); err != nil {
			t.Fatal(err)
		}
		_, err := locker.Acquire(t.Context(), lock.Request{Key: "second", Wait: time.Minute})
		if !errors.Is(err, lock.ErrRefused) || strings.Contains(err.Error(), "second") {
			t.Errorf("Acquire() against a unique index = %v, want ErrRefused and no key", err)
		}
		if n := count(t, coll); n != 1 {
			t.Errorf("Check() has left something: there are %d documents", n)
		}
	})
}

// wallClock is what LD_PRELOAD needs to give a server another clock.
type wallClock struct{ library, file string }

func newWallClock(tb testing.TB) wallClock {
	tb.Helper()
	dir := tb.TempDir()
	c := wallClock{filepath.Join(dir, "clock.so"), filepath.Join(dir, "clock")}
	cc, err := exec.LookPath("cc")
	if err != nil {
		tb.Skip("needs a C compiler: ", err)
	}
	if out, err := exec.Command(cc, "-shared", "-fPIC", "-O1", "-o", c.library, "../../faults/clock/preload/clock.c").CombinedOutput(); err != nil {
		tb.Fatalf("%v\n%s", err, out)
	}
	c.set(tb, 0)
	return c
}

func (c wallClock) set(tb testing.TB, ahead time.Duration) {
	tb.Helper()
	f, err := os.OpenFile(c.file, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt(binary.NativeEndian.AppendUint64(nil, uint64(ahead)), 0); err != nil {
		tb.Fatal(err)
	}
}

// The server's clock counts: if it is set on, leases end early, unless they have the slack. If it is set back, they last.
func TestServersClockIsSet(t *testing.T) {
	t.Parallel()
	c := newWallClock(t)
	s := services.Start(t, "mongodb", services.MongoDB, services.Options{Env: []string{"LD_PRELOAD=" + c.library, "LATCHKEY_CLOCK=" + c.file}})
	uri := uriOf(s.Addr)
	for _, tt := range clocks {
		t.Run(tt.name, func(t *testing.T) {
			coll := collectionAt(t, uri)
			locker := newLocker(t, coll, tt.opts...)
			other := newLocker(t, collectionOf(t, uri, coll.Name()), tt.opts...)
			acquire := func(l lock.Locker, key string) lock.Hold {
				t.Helper()
				hold, err := l.Acquire(t.Context(), lock.Request{Key: key, Wait: time.Minute})
				if err != nil {
					t.Fatal(err)
				}
				return hold
			}
			patient := newLocker(t, coll, append(tt.opts, mongolock.Slack(time.Hour))...)
			c.set(t, 0)
			hold, slack := acquire(locker, "k"), acquire(patient, "slack")
			c.set(t, 50*time.Minute)
			if _, err := other.Acquire(t.Context(), lock.Request{Key: "slack"}); !errors.Is(err, lock.ErrBusy) {
				t.Errorf("set on: Acquire() of a lock with slack = %v, want ErrBusy", err)
			}
			stolen := acquire(other, "k")
			if err := hold.(extender).Extend(t.Context(), time.Minute); !errors.Is(err, lock.ErrLost) {
				t.Errorf("set on: Extend() = %v, want ErrLost", err)
			}
			if err := errors.Join(stolen.Release(t.Context()), slack.Release(t.Context())); err != nil {
				t.Error(err)
			}
			hold = acquire(locker, "k")
			c.set(t, -50*time.Minute)
			if _, err := other.Acquire(t.Context(), lock.Request{Key: "k"}); !errors.Is(err, lock.ErrBusy) {
				t.Errorf("set back: Acquire() = %v, want ErrBusy", err)
			}
			if err := hold.(extender).Extend(t.Context(), time.Minute); err != nil {
				t.Errorf("set back: Extend() = %v", err)
			}
			if err := hold.Release(t.Context()); err != nil {
				t.Error(err)
			}
			gone(t, coll)
		})
	}
}

func TestUnreachableServer(t *testing.T) {
	t.Parallel()
	u := url.URL{Scheme: "mongodb", Host: "127.0.0.1:" + services.FreePort(), Path: "/"}
	locker := newLocker(t, collectionOf(t, u.String(), "locks"), mongolock.Timeout(time.Second))
	start := time.Now()
	if _, err := locker.Acquire(t.Context(), lock.Request{Key: "k"}); !isOutage(err) {
		t.Errorf("Acquire() = %v, want an outage", err)
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("the outage took %v, with a timeout of 1s", took)
	}
}
