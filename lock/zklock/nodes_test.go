package zklock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/zklock"
)

func TestDeletedNodeIsALoss(t *testing.T) {
	t.Parallel()
	addr := server(t).Addr
	l := newLocker(t, connect(t, addr, zklock.SessionTimeout(60*time.Second)))
	c := observer(t, addr)
	for _, kind := range []lock.Kind{lock.Exclusive, lock.Read} {
		h := take(t, l, lock.Request{Key: "k" + kind.String(), Kind: kind})
		if err := h.(interface {
			Extend(context.Context, time.Duration) error
		}).Extend(t.Context(), time.Millisecond); err != nil { // from a renewal on, the holder is told at once
			t.Fatal(err)
		}
		<-time.After(100 * time.Millisecond)
		start := time.Now()
		if err := c.Delete(own(t, root(t)+"/k"+kind.String()), -1); err != nil {
			t.Fatal(err)
		}
		if d := ends(t, h).Sub(start); d > 5*time.Second {
			t.Errorf("the holder of a node that was deleted is told after %v", d)
		}
		if err := h.Release(t.Context()); !errors.Is(err, lock.ErrLost) {
			t.Errorf("Release() = %v, want %v", err, lock.ErrLost)
		}
	}
	h := take(t, newLocker(t, connect(t, addr)), lock.Request{Key: "early"})
	if err := c.Delete(own(t, root(t)+"/early"), -1); err != nil {
		t.Fatal(err)
	}
	ends(t, h)
}

// A waiter whose node somebody deletes gets in line again.
func TestDeletedWaiterComesAgain(t *testing.T) {
	t.Parallel()
	addr := server(t).Addr
	l := newLocker(t, connect(t, addr))
	h := take(t, l, lock.Request{Key: "k"})
	first := own(t, root(t)+"/k")
	waiter := acquire(t, l, lock.Request{Key: "k", Wait: time.Minute})
	c := observer(t, addr)
	soon(t, "the waiter's node deleted", func() bool {
		for _, name := range inLine(t, root(t)+"/k") {
			if path := root(t) + "/k/" + name; path != first {
				return c.Delete(path, -1) == nil
			}
		}
		return false
	})
	release(t, h)
	release(t, waiter.held())
}

func TestClosedSessionEndsItsHolds(t *testing.T) {
	t.Parallel()
	addr := server(t).Addr
	s := connect(t, addr, zklock.SessionTimeout(60*time.Second))
	l := newLocker(t, s)
	h := take(t, l, lock.Request{Key: "k"})
	waiter := acquire(t, l, lock.Request{Key: "k", Wait: -1})
	soon(t, "two in line", func() bool { return len(inLine(t, root(t)+"/k")) == 2 })
	start := time.Now()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if d := ends(t, h).Sub(start); d > 10*time.Second {
		t.Errorf("the hold ends %v after its session was closed", d)
	}
	if waiter.wait(); waiter.err == nil {
		t.Error("a waiter has the lock in a closed session")
	}
	if _, err := l.Acquire(t.Context(), lock.Request{Key: "k"}); err == nil || errors.Is(err, lock.ErrBusy) {
		t.Errorf("Acquire in a closed session = %v", err)
	}
	if names := inLine(t, root(t)+"/k"); len(names) > 0 {
		t.Errorf("%v are left in line", names)
	}
}

func TestParentsGoWithTheirLocks(t *testing.T) {
	t.Parallel()
	addr := server(t).Addr
	l := newLocker(t, connect(t, addr))
	release(t, take(t, l, lock.Request{Key: "k"}))
	c := observer(t, addr)
	soon(t, "no root", func() bool {
		there, _, err := c.Exists(root(t))
		return err == nil && !there
	})
	before := take(t, l, lock.Request{Key: "k", Kind: lock.Fenced})
	release(t, before)
	soon(t, "no parent", func() bool { there, _, err := c.Exists(root(t) + "/k"); return err == nil && !there })
	after := take(t, l, lock.Request{Key: "k", Kind: lock.Fenced})
	if a, b := token(after), token(before); a <= b {
		t.Errorf("token %d follows %d, although the counter of the parent begins again", a, b)
	}
	release(t, after)
}

func token(h lock.Hold) int64 { return h.(interface{ Token() int64 }).Token() }

func TestRefusals(t *testing.T) {
	t.Parallel()
	addr := server(t).Addr
	c := observer(t, addr)
	if err := c.AddAuth("digest", []byte("owner:secret")); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{root(t), root(t) + "/foreign"} {
		if _, err := c.Create(path, nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
			t.Fatal(err)
		}
	}
	private := zk.DigestACL(zk.PermAll, "owner", "secret")
	if _, err := c.Create(root(t)+"/private", nil, 0, private); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Create(root(t)+"/foreign/lease-", nil, zk.FlagEphemeralSequential, zk.WorldACL(zk.PermAll)); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Create(root(t)+"/ephemeral", nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll)); err != nil {
		t.Fatal(err)
	}
	l := newLocker(t, connect(t, addr))
	for _, key := range []string{"private", "foreign", "ephemeral"} {
		for _, wait := range []time.Duration{0, time.Minute} {
			if _, err := l.Acquire(t.Context(), lock.Request{Key: key, Wait: wait}); !errors.Is(err, lock.ErrRefused) {
				t.Errorf("Acquire of %s with Wait %v = %v, want %v", key, wait, err, lock.ErrRefused)
			}
		}
	}
	owner := newLocker(t, connect(t, addr, zklock.Auth("digest", []byte("owner:secret"))), zklock.ACL(private...))
	h := take(t, owner, lock.Request{Key: "private"})
	names, _, err := c.Children(root(t) + "/private")
	if err != nil || len(names) != 1 {
		t.Fatalf("in the private line: %v, %v", names, err)
	}
	if acl, _, err := c.GetACL(root(t) + "/private/" + names[0]); err != nil || len(acl) != 1 || acl[0].Scheme != "digest" {
		t.Errorf("the node's ACL is %v, %v", acl, err)
	}
	release(t, h)
	if names := inLine(t, root(t)+"/foreign"); len(names) != 1 {
		t.Errorf("in the foreign line: %v", names)
	}
}

func TestOtherFamilyIsRefusedAtOnce(t *testing.T) {
	t.Parallel()
	addr := server(t).Addr
	l, other := newLocker(t, connect(t, addr)), newLocker(t, connect(t, addr))
	h := take(t, l, lock.Request{Key: "k", Kind: lock.Read})
	for _, wait := range []time.Duration{0, time.Minute} {
		start := time.Now()
		_, err := other.Acquire(t.Context(), lock.Request{Key: "k", Wait: wait})
		if e, ok := errors.AsType[*lock.KindError](err); !ok || e.Held != lock.Read {
			t.Errorf("Acquire beside a reader = %v, want a KindError", err)
		}
		if d := time.Since(start); d > 5*time.Second {
			t.Errorf("the refusal takes %v", d)
		}
	}
	release(t, h)
	soon(t, "no node in line", func() bool { return len(inLine(t, root(t)+"/k")) == 0 })
}

// A writer that is about to be refused has a node for a moment, which may be the first in line when the holder leaves.
func TestRefusedFamilyDisturbsNobody(t *testing.T) {
	t.Parallel()
	addr := server(t).Addr
	l, c := newLocker(t, connect(t, addr)), observer(t, addr)
	h := take(t, l, lock.Request{Key: "k"})
	for range 5 {
		writer, err := c.CreateProtectedEphemeralSequential(root(t)+"/k/__WRIT__", nil, zk.WorldACL(zk.PermAll))
		if err != nil {
			t.Fatal(err)
		}
		next := acquire(t, l, lock.Request{Key: "k", Wait: time.Minute})
		soon(t, "three in line", func() bool {
			names, _, err := c.Children(root(t) + "/k")
			return err == nil && len(names) == 3
		})
		release(t, h)
		<-time.After(20 * time.Millisecond)
		if err := c.Delete(writer, -1); err != nil {
			t.Fatal(err)
		}
		h = next.held()
	}
	release(t, h)
}
