package mongolock_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/locktest"
	"github.com/latchkey-go/latchkey/lock/mongolock"
)

// besideShedLock runs a test for both clocks with a Java process beside it.
func besideShedLock(t *testing.T, test func(t *testing.T, coll *mongo.Collection, p *peer, opts []mongolock.Option)) {
	forEachClock(t, func(t *testing.T, coll *mongo.Collection, opts []mongolock.Option) {
		test(t, coll, startPeer(t, serverURI(t), coll), opts)
	})
}

func TestShedLockAndLatchkeyExcludeEachOther(t *testing.T) {
	besideShedLock(t, func(t *testing.T, coll *mongo.Collection, p *peer, opts []mongolock.Option) {
		locker := newLocker(t, coll, opts...)
		p.must(t, "locked", "lock", "job", 60_000)
		_, err := locker.Acquire(t.Context(), lock.Request{Key: "job"})
		if busy, ok := errors.AsType[*lock.BusyError](err); !ok || busy.Remaining < 50*time.Second || busy.Remaining > 61*time.Second {
			t.Errorf("Acquire() = %v, want busy for a minute", err)
		}
		got := make(chan lock.Hold)
		go func() {
			hold, err := locker.Acquire(t.Context(), lock.Request{Key: "job", Wait: time.Minute})
			if err != nil {
				t.Errorf("Acquire() = %v", err)
			}
			got <- hold
		}()
		p.must(t, "extended", "extend", "job", 50_000)
		p.must(t, "unlocked", "unlock", "job")
		hold := <-got
		if hold == nil {
			t.FailNow()
		}
		p.must(t, "busy", "lock", "job", 1000)
		if err := hold.Release(t.Context()); err != nil {
			t.Error(err)
		}
		p.must(t, "locked", "lock", "job", 1000)
		p.must(t, "unlocked", "unlock", "job")
	})
}

func TestRenewedLockIsBusyForShedLock(t *testing.T) {
	besideShedLock(t, func(t *testing.T, coll *mongo.Collection, p *peer, opts []mongolock.Option) {
		const watchdog = 2 * time.Second
		hold, err := newLocker(t, coll, append(opts, mongolock.Watchdog(watchdog))...).Acquire(t.Context(), lock.Request{Key: "job"})
		if err != nil {
			t.Fatal(err)
		}
		for end := time.Now().Add(3 * watchdog / 2); time.Now().Before(end); {
			p.must(t, "busy", "lock", "job", 1000)
		}
		if err := hold.(keeper).Keep(t.Context(), time.Second); err != nil {
			t.Fatal(err)
		}
		p.must(t, "busy", "lock", "job", 1000)
		for p.tell(t, "lock", "job", 1000) == "busy" {
			time.Sleep(10 * time.Millisecond)
		}
	})
}

func TestCrashOfEitherSideEndsWithItsLease(t *testing.T) {
	besideShedLock(t, func(t *testing.T, coll *mongo.Collection, p *peer, opts []mongolock.Option) {
		const lease = 2 * time.Second
		crashing := start(t, job{URI: serverURI(t), Collection: coll.Name(), Key: "ours", Watchdog: lease})
		crashing.says(t, "held")
		p.must(t, "busy", "lock", "ours", 1000)
		crashing.signal(t, syscall.SIGKILL)
		for p.tell(t, "lock", "ours", 1000) == "busy" {
			time.Sleep(10 * time.Millisecond)
		}
		p.must(t, "locked", "lock", "theirs", lease.Milliseconds())
		locked := time.Now()
		p.kill()
		hold, err := newLocker(t, coll, opts...).Acquire(t.Context(), lock.Request{Key: "theirs", Wait: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(locked); took < lease-500*time.Millisecond {
			t.Errorf("had the lock of ShedLock after %v of %v", took, lease)
		}
		if err := hold.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestMixedProcessesExcludeEachOther(t *testing.T) {
	t.Parallel()
	coll := newCollection(t)
	uri := serverURI(t)
	peers := []*peer{startPeer(t, uri, coll), startPeer(t, uri, coll)}
	file := filepath.Join(t.TempDir(), "number")
	if err := os.WriteFile(file, []byte("0"), 0o600); err != nil {
		t.Fatal(err)
	}
	const rounds = 15
	var ours []*process
	for range 2 {
		ours = append(ours, start(t, job{URI: uri, Collection: coll.Name(), Key: "job", Watchdog: 10 * time.Second, File: file, Rounds: rounds}))
	}
	answers := make(chan string)
	for _, p := range peers {
		go func() { answers <- p.tell(t, "raise", "job", rounds, file) }()
	}
	for range peers {
		if answer := <-answers; answer != "raised" {
			t.Errorf("ShedLock says %q", answer)
		}
	}
	for _, p := range ours {
		p.says(t, "released")
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if n, _ := strconv.Atoi(string(text)); n != 4*rounds {
		t.Errorf("the number is %s, want %d: somebody came in between", text, 4*rounds)
	}
}

// ShedLock compares lockUntil with the clock of its own machine. If that is ahead, it takes a lock that is held; Slack keeps it out.
func TestShedLockWithAFastClock(t *testing.T) {
	besideShedLock(t, func(t *testing.T, coll *mongo.Collection, p *peer, opts []mongolock.Option) {
		p.must(t, "set", "clock", 10_000)
		hold, err := newLocker(t, coll, opts...).Acquire(t.Context(), lock.Request{Key: "plain", Lease: 8 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		p.must(t, "locked", "lock", "plain", 60_000)
		if err := hold.Release(t.Context()); !errors.Is(err, lock.ErrLost) {
			t.Errorf("Release() of a lock that ShedLock took away = %v, want ErrLost", err)
		}
		slack := newLocker(t, coll, append(opts, mongolock.Slack(15*time.Second))...)
		hold, err = slack.Acquire(t.Context(), lock.Request{Key: "slack", Lease: 8 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		p.must(t, "busy", "lock", "slack", 60_000)
		if err := hold.Release(t.Context()); err != nil {
			t.Error(err)
		}
		p.must(t, "locked", "lock", "slack", 60_000)
	})
}

// If ShedLock's clock is behind, its locks end early for all others; its lockAtMostFor has to have room for that.
func TestShedLockWithASlowClock(t *testing.T) {
	besideShedLock(t, func(t *testing.T, coll *mongo.Collection, p *peer, opts []mongolock.Option) {
		p.must(t, "set", "clock", -10_000)
		locker := newLocker(t, coll, opts...)
		p.must(t, "locked", "lock", "short", 8000)
		hold, err := locker.Acquire(t.Context(), lock.Request{Key: "short"})
		if err != nil {
			t.Fatalf("Acquire() of a lock that has ended by the server's clock = %v", err)
		}
		p.must(t, "unlocked", "unlock", "short") // it does not look whose lock it is
		if err := hold.Release(t.Context()); !errors.Is(err, lock.ErrLost) {
			t.Errorf("Release() of a lock that ShedLock has unlocked = %v, want ErrLost", err)
		}
		p.must(t, "locked", "lock", "long", 30_000)
		if _, err := locker.Acquire(t.Context(), lock.Request{Key: "long"}); !errors.Is(err, lock.ErrBusy) {
			t.Errorf("Acquire() = %v, want ErrBusy", err)
		}
	})
}

// HelloClock is for servers like this one. Without the option nothing is taken.
func TestServerWithoutPipelineUpdates(t *testing.T) {
	_, addr := java(t, "server")
	coll := collectionAt(t, uriOf(addr))
	if _, err := newLocker(t, coll).Acquire(t.Context(), lock.Request{Key: "k", Wait: 100 * time.Millisecond}); err == nil || errors.Is(err, lock.ErrBusy) {
		t.Errorf("Acquire() = %v, want an error of the server", err)
	}
	if err := newLocker(t, coll).Check(t.Context()); err == nil {
		t.Error("Check() = nil")
	}
	if n := count(t, coll); n != 0 {
		t.Errorf("%d documents are left behind", n)
	}
	if err := newLocker(t, coll, mongolock.HelloClock()).Check(t.Context()); err != nil {
		t.Errorf("Check() with HelloClock = %v", err)
	}
	locktest.Run(t, func(t *testing.T) lock.Locker {
		return newLocker(t, coll, quick, mongolock.HelloClock())
	}, locktest.Kinds(lock.Exclusive, lock.Spin))
}

type keeper interface {
	Keep(ctx context.Context, d time.Duration) error
}
