package zklock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/services"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/zklock"
)

// linked returns a Locker with a session of that timeout whose way to the server can be cut.
func linked(t *testing.T, addr string, timeout time.Duration, opts ...zklock.Option) (*link, *zklock.Locker) {
	t.Helper()
	way := openLink(t, addr)
	return way, newLocker(t, connect(t, way.addr(), zklock.SessionTimeout(timeout)), opts...)
}

func TestHoldEndsBeforeTheSessionOfACutNetwork(t *testing.T) {
	t.Parallel()
	addr := server(t).Addr
	for name, cut := range map[string]func(*link){
		"closed":    (*link).cut,
		"questions": func(l *link) { l.swallow("upstream") },
		"answers":   func(l *link) { l.swallow("downstream") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			way, l := linked(t, addr, short)
			h := afterOutage(t, l, lock.Request{Key: "k"})
			next := acquire(t, newLocker(t, connect(t, addr), zklock.Root(root(t))), lock.Request{Key: "k", Wait: time.Minute})
			soon(t, "two in line", func() bool { return len(inLine(t, root(t)+"/k")) == 2 })
			alive(t, h)
			start := time.Now()
			cut(way)
			ended := ends(t, h)
			held := next.held()
			if !ended.Before(next.at) {
				t.Errorf("the holder is told %v after the next one has the lock", ended.Sub(next.at))
			}
			if d := ended.Sub(start); d < short/4 {
				t.Errorf("the hold ends %v after the cut, with a session of %v", d, short)
			}
			if name == "closed" {
				way.mend()
			} else {
				way.clear()
			}
			if err := h.Release(context.Background()); !errors.Is(err, lock.ErrLost) {
				t.Errorf("Release() = %v, want %v", err, lock.ErrLost)
			}
			release(t, held)
			release(t, afterOutage(t, l, lock.Request{Key: "k", Wait: 20 * time.Second})) // in a new session
		})
	}
}

func TestHoldOutlivesAShortCut(t *testing.T) {
	t.Parallel()
	addr := server(t).Addr
	way, l := linked(t, addr, 4*time.Second)
	h := take(t, l, lock.Request{Key: "k"})
	waiter := acquire(t, l, lock.Request{Key: "k", Wait: time.Minute})
	way.cut()
	<-time.After(300 * time.Millisecond)
	way.mend()
	<-time.After(4 * time.Second) // longer than a session lives that nobody has heard of
	alive(t, h)
	other := newLocker(t, connect(t, addr))
	busy(t, other, "k")
	release(t, h)
	release(t, waiter.held())
	release(t, take(t, other, lock.Request{Key: "k"}))
}

// The servers have done what they were asked, and nobody has heard of it.
func TestLostAnswersLeaveNothing(t *testing.T) {
	t.Parallel()
	addr := server(t).Addr
	way, l := linked(t, addr, 4*time.Second, zklock.Timeout(500*time.Millisecond))
	other := newLocker(t, connect(t, addr))
	for _, wait := range []time.Duration{0, 200 * time.Millisecond, -1} {
		release(t, afterOutage(t, l, lock.Request{Key: "k"})) // so that there is a connection, whose answers can be lost
		way.swallow("downstream")
		_, err := l.Acquire(t.Context(), lock.Request{Key: "k", Wait: wait})
		if err == nil || errors.Is(err, lock.ErrBusy) || errors.Is(err, lock.ErrRefused) {
			t.Errorf("Acquire with Wait %v without answers = %v, want an outage", wait, err)
		}
		soon(t, "the node whose maker was not answered", func() bool { return len(inLine(t, root(t)+"/k")) > 0 })
		way.cut()
		way.clear()
		way.mend()
		release(t, take(t, other, lock.Request{Key: "k", Wait: 20 * time.Second}))
		soon(t, "no node in line", func() bool { return len(inLine(t, root(t)+"/k")) == 0 })
	}
	release(t, afterOutage(t, l, lock.Request{Key: "k"}))
}

// An Acquire whose answer was lost finds its node again when there is a connection in time.
func TestTakeFindsItsOwnNode(t *testing.T) {
	t.Parallel()
	way, l := linked(t, server(t).Addr, 4*time.Second)
	release(t, take(t, l, lock.Request{Key: "k"}))
	way.swallow("downstream")
	p := acquire(t, l, lock.Request{Key: "k", Wait: 10 * time.Second})
	var first string
	soon(t, "the node", func() bool {
		names := inLine(t, root(t)+"/k")
		if len(names) == 1 {
			first = names[0]
		}
		return first != ""
	})
	way.cut()
	way.clear()
	way.mend()
	h := p.held()
	if now := own(t, root(t)+"/k"); now != root(t)+"/k/"+first {
		t.Errorf("the node is %s, and was %s", now, first)
	}
	release(t, h)
}

func TestReleaseWithoutAnswerIsDone(t *testing.T) {
	t.Parallel()
	addr := server(t).Addr
	way, l := linked(t, addr, 4*time.Second)
	h := take(t, l, lock.Request{Key: "k"})
	way.swallow("upstream")
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if err := h.Release(ctx); err == nil || errors.Is(err, lock.ErrLost) || errors.Is(err, lock.ErrNotHeld) {
		t.Errorf("Release() without an answer = %v, want an outage", err)
	}
	way.cut()
	way.clear()
	way.mend()
	release(t, take(t, newLocker(t, connect(t, addr)), lock.Request{Key: "k", Wait: 3 * time.Second})) // before the session would end
}

func TestSlowNetwork(t *testing.T) {
	t.Parallel()
	addr := server(t).Addr
	way, l := linked(t, addr, 4*time.Second)
	for _, stream := range []string{"upstream", "downstream"} {
		way.add("latency", stream, map[string]any{"latency": 60, "jitter": 40})
	}
	h := take(t, l, lock.Request{Key: "k"})
	other := newLocker(t, connect(t, addr))
	busy(t, other, "k")
	<-time.After(5 * time.Second) // longer than the session's timeout
	alive(t, h)
	release(t, h)
	release(t, take(t, other, lock.Request{Key: "k"}))
}

// The session asks for a minute, and gets 4s.
func TestServerThatIsSilent(t *testing.T) {
	t.Parallel()
	s := services.Start(t, "zookeeper", services.ZooKeeper, services.Options{})
	l := newLocker(t, connect(t, s.Addr, zklock.SessionTimeout(60*time.Second)), zklock.Timeout(short))
	h := afterOutage(t, l, lock.Request{Key: "k"})
	waiter := acquire(t, l, lock.Request{Key: "k", Wait: -1})
	soon(t, "two in line", func() bool {
		names, _, err := observer(t, s.Addr).Children(root(t) + "/k")
		return err == nil && len(names) == 2
	})
	start := time.Now()
	if err := s.Pause(); err != nil {
		t.Fatal(err)
	}
	if d := ends(t, h).Sub(start); d > 4*short {
		t.Errorf("the hold ends %v after the server fell silent, with a session of %v", d, 4*short)
	}
	if waiter.wait(); waiter.err == nil || errors.Is(waiter.err, lock.ErrBusy) {
		t.Errorf("a waiter at a silent server gets %v, want an outage", waiter.err)
	}
	start = time.Now()
	if _, err := l.Acquire(t.Context(), lock.Request{Key: "k"}); err == nil || errors.Is(err, lock.ErrBusy) {
		t.Errorf("Acquire at a silent server = %v, want an outage", err)
	}
	if d := time.Since(start); d > 4*short {
		t.Errorf("Acquire at a silent server takes %v", d)
	}
	if err := s.Resume(); err != nil {
		t.Fatal(err)
	}
	release(t, afterOutage(t, l, lock.Request{Key: "k", Wait: 20 * time.Second}))
}

// For as long as it is away, here under the Timeout, nobody is told anything.
func TestServerRestarts(t *testing.T) {
	t.Parallel()
	s := services.Start(t, "zookeeper", services.ZooKeeper, services.Options{Args: []string{"maxSessionTimeout=20000"}})
	l := newLocker(t, connect(t, s.Addr, zklock.SessionTimeout(20*time.Second)), zklock.Timeout(19*time.Second))
	h := afterOutage(t, l, lock.Request{Key: "k"})
	waiter := acquire(t, l, lock.Request{Key: "k", Wait: -1})
	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := s.Run(); err != nil {
		t.Fatal(err)
	}
	other := newLocker(t, connect(t, s.Addr))
	soon(t, "busy", func() bool {
		_, err := other.Acquire(t.Context(), lock.Request{Key: "k"})
		return errors.Is(err, lock.ErrBusy)
	})
	alive(t, h)
	release(t, h)
	release(t, waiter.held())
	release(t, take(t, other, lock.Request{Key: "k"}))
}
