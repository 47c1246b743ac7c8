package mongolock_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/mongolock"
)

// link is a way to the server through toxiproxy, within this process.
type link struct{ proxy *toxiproxy.Proxy }

func newLink(tb testing.TB) *link {
	tb.Helper()
	u, err := url.Parse(serverURI(tb))
	if err != nil {
		tb.Fatal(err)
	}
	p := toxiproxy.NewProxy(toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop()), "link", "127.0.0.1:0", u.Host)
	if err := p.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(p.Stop)
	return &link{p}
}

// add makes the link worse. The stream downstream are the answers.
func (l *link) add(tb testing.TB, kind, stream string, attribute string, value int) {
	tb.Helper()
	text := fmt.Sprintf(`{"name":%q,"type":%q,"stream":%q,"attributes":{%q:%d}}`, kind+stream, kind, stream, attribute, value)
	if _, err := l.proxy.Toxics.AddToxicJson(strings.NewReader(text)); err != nil {
		tb.Fatal(err)
	}
}

// heal makes the link good again.
func (l *link) heal() { l.proxy.Toxics.ResetToxics(context.Background()) }

// through returns the collection over the link, with connections that are open already.
func (l *link) through(tb testing.TB, coll *mongo.Collection) *mongo.Collection {
	tb.Helper()
	far := collectionOf(tb, uriOf(l.proxy.Listen), coll.Name())
	if err := far.Database().Client().Ping(tb.Context(), nil); err != nil {
		tb.Fatal(err)
	}
	return far
}

// gone waits until the collection has no document.
func gone(tb testing.TB, coll *mongo.Collection) {
	tb.Helper()
	for end := time.Now().Add(time.Minute); count(tb, coll) > 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			tb.Fatal("a document is left behind")
		}
	}
}

func TestLockWhoseAnswerWasLostIsFreed(t *testing.T) {
	t.Parallel()
	coll := newCollection(t)
	l := newLink(t)
	far := newLocker(t, l.through(t, coll), quick, mongolock.Timeout(time.Second))
	l.add(t, "timeout", "downstream", "timeout", 0)
	if _, err := far.Acquire(t.Context(), lock.Request{Key: "k"}); !isOutage(err) {
		t.Errorf("Acquire() = %v, want an outage", err)
	}
	if n := count(t, coll); n != 1 {
		t.Errorf("%d documents: the question did not arrive, so this test shows nothing", n)
	}
	l.heal()
	gone(t, coll)
	hold, err := far.Acquire(t.Context(), lock.Request{Key: "k", Wait: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	l.add(t, "timeout", "downstream", "timeout", 0)
	released := make(chan error)
	go func() { released <- hold.Release(context.WithoutCancel(t.Context())) }()
	gone(t, coll) // the release has arrived, and its answer has not
	l.heal()
	if err := <-released; err != nil && !isOutage(err) {
		t.Errorf("Release() = %v", err)
	}
}

// With HelloClock a question has two parts, and the answer to either can be lost.
func TestLockWhoseSecondAnswerWasLostIsFreed(t *testing.T) {
	t.Parallel()
	coll := newCollection(t)
	l := newLink(t)
	far := newLocker(t, l.through(t, coll), quick, mongolock.HelloClock(), mongolock.Timeout(time.Second))
	for bytes := 100; bytes <= 1900; bytes += 300 {
		l.add(t, "limit_data", "downstream", "bytes", bytes) // and then the connection is closed
		for range 3 {
			hold, err := far.Acquire(t.Context(), lock.Request{Key: "k"})
			if err == nil {
				err = hold.Release(t.Context())
			}
			if err != nil && !isOutage(err) && !errors.Is(err, lock.ErrBusy) {
				t.Errorf("after %d bytes: %v", bytes, err)
			}
		}
		l.heal()
		gone(t, coll)
	}
}

func TestHolderBehindACutIsToldBeforeOthersHaveTheLock(t *testing.T) {
	forEachClock(t, func(t *testing.T, coll *mongo.Collection, opts []mongolock.Option) {
		l := newLink(t)
		far := newLocker(t, l.through(t, coll), append(opts, mongolock.Watchdog(2*time.Second), mongolock.Timeout(time.Second))...)
		hold, err := far.Acquire(t.Context(), lock.Request{Key: "k"})
		if err != nil {
			t.Fatal(err)
		}
		told := make(chan time.Time, 1)
		context.AfterFunc(hold.Context(), func() { told <- time.Now() })
		l.add(t, "timeout", "upstream", "timeout", 0)
		l.add(t, "timeout", "downstream", "timeout", 0)
		next, err := newLocker(t, coll, opts...).Acquire(t.Context(), lock.Request{Key: "k", Wait: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		if at := <-told; time.Since(at) < 0 || !errors.Is(context.Cause(hold.Context()), lock.ErrLost) {
			t.Errorf("the holder was told at %v: %v", at, context.Cause(hold.Context()))
		} else if hold.Context().Err() == nil {
			t.Error("two have the lock")
		}
		l.heal()
		if err := next.Release(t.Context()); err != nil {
			t.Error(err)
		}
		if err := hold.Release(t.Context()); !errors.Is(err, lock.ErrLost) {
			t.Errorf("Release() = %v, want ErrLost", err)
		}
		gone(t, coll)
	})
}

func TestLockIsKeptOverASlowLink(t *testing.T) {
	t.Parallel()
	coll := newCollection(t)
	l := newLink(t)
	l.add(t, "latency", "upstream", "latency", 200)
	l.add(t, "latency", "downstream", "latency", 200)
	const watchdog = 3 * time.Second
	hold, err := newLocker(t, l.through(t, coll), mongolock.Watchdog(watchdog)).Acquire(t.Context(), lock.Request{Key: "k", Wait: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	near := newLocker(t, coll, quick)
	if _, err := near.Acquire(t.Context(), lock.Request{Key: "k", Wait: 3 * watchdog / 2}); !errors.Is(err, lock.ErrBusy) {
		t.Errorf("Acquire() = %v, want ErrBusy", err)
	}
	if err := hold.Release(t.Context()); err != nil {
		t.Error(err)
	}
	gone(t, coll)
}
