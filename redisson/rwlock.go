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

// readWrite keeps a mode, and a count for each reader and for the writer, in the lock's hash; and for each reader a key that
// lives as long as its lease, from which a release learns how long the others read on. Redisson has such a key for each hold
// of a reader, and takes the longest; so the first one is enough.
type readWrite struct{}

func (readWrite) enter(ho *holder, lease time.Duration) call {
	s := readAcquire
	if ho.kind == lock.Write {
		s = writeAcquire
	}
	return call{Script: s, Keys: ho.keys[:], Args: []any{ho.id, millis(lease), readTimeout(ho.name(), ho.id)}}
}

func (readWrite) update(ho *holder, c counts, lease time.Duration, why change) call {
	how := any("")
	switch why {
	case reentry:
		how = millis(c.added)
	case shortening:
		how = "cut"
	}
	return call{Script: rwUpdate, Keys: ho.keys[:], Args: []any{ho.id, millis(lease), c.reads, c.writes, how, readTimeout(ho.name(), ho.id)}}
}

func (readWrite) exit(ho *holder, successor string, kept time.Duration) call {
	return call{Script: rwRelease, Keys: ho.keys[:], Args: []any{ho.id, suffixBase(ho.name()), message(ho.kind), rwChannel(ho.name()), successor, millis(kept)}}
}

// message is what is published at the end of a side: "1" wakes all waiters of a process, "0" one.
func message(k lock.Kind) string {
	if k == lock.Write {
		return "1"
	}
	return "0"
}
