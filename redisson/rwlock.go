package redisson

import (
	"time"

	"github.com/latchkey-go/latchkey/lock"
)

// ReadWriteLock is Redisson's RReadWriteLock: any number of owners read, or one writes. It prefers nobody: readers pass a
// writer that waits. An owner that writes may also read and then stop writing, so that nobody writes in between; an owner
// that only reads is refused as a writer, since it would wait for itself.
//
// The context of a hold ends with its Unlock, and with it all that derive from it. To go on reading after writing, take
// both locks under one owner, side by side: see the example.
type ReadWriteLock struct {
	c    *Client
	name string
}

// ReadWriteLock returns the read/write lock of that name. An empty name is refused by the methods of its sides.
func (c *Client) ReadWriteLock(name string) *ReadWriteLock { return &ReadWriteLock{c, name} }

// ReadLock returns the side that readers share.
func (l *ReadWriteLock) ReadLock() *Lock { return l.c.newLock(l.name, lock.Read) }

// WriteLock returns the side that one owner has alone.
func (l *ReadWriteLock) WriteLock() *Lock { return l.c.newLock(l.name, lock.Write) }

// readWrite keeps a mode, and a count for each reader and for the writer, in the lock's hash; and for each read hold a key
// that lives as long as its lease, from which a release learns how long the others read on.
type readWrite struct{}

func (readWrite) enter(cl *claim, h *hold, lease time.Duration) call {
	count := cl.count(h.kind) + 1
	if h.kind == lock.Write {
		return call{writeAcquireScript(), []string{cl.name}, []any{cl.holder, millis(lease), count}}
	}
	again := "0"
	if len(cl.holds) > 0 {
		again = "1"
	}
	return call{readAcquireScript(), []string{cl.name}, []any{cl.holder, millis(lease), count, again, readTimeouts(cl.name, cl.holder)}}
}

func (r readWrite) exit(cl *claim, lease time.Duration) call {
	return call{rwReleaseScript(), []string{cl.name}, []any{cl.holder, cl.count(lock.Read), cl.count(lock.Write),
		millis(lease), suffixBase(cl.name), message(cl.kind), r.channel(cl)}}
}

func (readWrite) renew(cl *claim, lease time.Duration) call {
	return call{rwRenewScript(), []string{cl.name}, []any{cl.holder, millis(lease), cl.count(lock.Read), cl.count(lock.Write),
		readTimeouts(cl.name, cl.holder)}}
}

func (readWrite) force(name string, kind lock.Kind) call {
	return call{rwForceScript(), []string{name}, []any{kind.String(), message(kind), rwChannel(name)}}
}

func (readWrite) channel(cl *claim) string { return rwChannel(cl.name) }

// message is what the end of a side is told with: "1" wakes all waiters of a process, "0" one.
func message(k lock.Kind) string {
	if k == lock.Write {
		return "1"
	}
	return "0"
}
