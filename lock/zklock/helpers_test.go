package zklock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/latchkey-go/latchkey/lock"
)

// pending is an Acquire in the background.
type pending struct {
	testing.TB
	done chan struct{}
	hold lock.Hold
	err  error
	at   time.Time // of the answer
}

func acquire(tb testing.TB, l lock.Locker, r lock.Request) *pending {
	p := &pending{TB: tb, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		p.hold, p.err = l.Acquire(tb.Context(), r)
		p.at = time.Now()
	}()
	return p
}

// wait returns when the Acquire does.
func (p *pending) wait() {
	p.Helper()
	select {
	case <-p.done:
	case <-time.After(time.Minute):
		p.Fatal("Acquire does not return")
	}
}

func (p *pending) held() lock.Hold {
	p.Helper()
	if p.wait(); p.err != nil {
		p.Fatalf("Acquire() = %v", p.err)
	}
	return p.hold
}

// take is an Acquire that succeeds.
func take(tb testing.TB, l lock.Locker, r lock.Request) lock.Hold {
	tb.Helper()
	return acquire(tb, l, r).held()
}

// afterOutage is take, once servers answer again.
func afterOutage(tb testing.TB, l lock.Locker, r lock.Request) (h lock.Hold) {
	tb.Helper()
	var err error
	soon(tb, "an Acquire after the outage", func() bool {
		h, err = l.Acquire(tb.Context(), r)
		return err == nil
	})
	return h
}

func release(tb testing.TB, h lock.Hold) {
	tb.Helper()
	if err := h.Release(context.WithoutCancel(tb.Context())); err != nil {
		tb.Errorf("Release() = %v", err)
	}
}

func busy(tb testing.TB, l lock.Locker, key string) {
	tb.Helper()
	if h, err := l.Acquire(tb.Context(), lock.Request{Key: key}); !errors.Is(err, lock.ErrBusy) {
		tb.Errorf("Acquire() = %v, %v, want %v", h, err, lock.ErrBusy)
	}
}

// ends waits for the end of a hold and returns when that was. It has to be for a loss.
func ends(tb testing.TB, h lock.Hold) time.Time {
	tb.Helper()
	select {
	case <-h.Context().Done():
	case <-time.After(time.Minute):
		tb.Fatal("the hold does not end")
	}
	at := time.Now()
	if cause := context.Cause(h.Context()); !errors.Is(cause, lock.ErrLost) {
		tb.Errorf("the hold ends with %v, want %v", cause, lock.ErrLost)
	}
	return at
}

// alive checks that a hold is good.
func alive(tb testing.TB, h lock.Hold) {
	tb.Helper()
	if h.Context().Err() != nil {
		tb.Errorf("the hold has ended: %v", context.Cause(h.Context()))
	}
}

// observer is a client that looks at the shared server's nodes.
func observer(tb testing.TB, addr string) *zk.Conn {
	tb.Helper()
	c, _, err := zk.Connect([]string{addr}, 4*time.Second, zk.WithLogInfo(false))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(c.Close)
	return c
}

// inLine returns the nodes below path at the shared server.
func inLine(tb testing.TB, path string) []string {
	tb.Helper()
	names, _, err := observer(tb, server(tb).Addr).Children(path)
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		tb.Fatal(err)
	}
	return names
}

// soon checks that something becomes true.
func soon(tb testing.TB, what string, ok func() bool) {
	tb.Helper()
	for end := time.Now().Add(20 * time.Second); !ok(); <-time.After(5 * time.Millisecond) {
		if time.Now().After(end) {
			tb.Fatalf("not after 20s: %s", what)
		}
	}
}

// own returns the path of the only node in line.
func own(tb testing.TB, path string) string {
	tb.Helper()
	names := inLine(tb, path)
	if len(names) != 1 || !strings.HasPrefix(names[0], "_c_") {
		tb.Fatalf("in line: %v, want one node", names)
	}
	return path + "/" + names[0]
}
