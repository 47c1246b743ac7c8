package zklock_test

import (
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/zklock"
)

// counted counts the questions that go through a connection: the library sends each in one piece.
type counted struct {
	net.Conn
	n *atomic.Int64
}

func (c counted) Write(p []byte) (int, error) {
	c.n.Add(1)
	return c.Conn.Write(p)
}

// The README has these numbers. In a minute, the session asks 12 questions of its own.
func TestCost(t *testing.T) {
	var n atomic.Int64
	s := connect(t, server(t).Addr, zklock.SessionTimeout(60*time.Second), zklock.Dialer(
		func(network, address string, timeout time.Duration) (net.Conn, error) {
			c, err := net.DialTimeout(network, address, timeout)
			return counted{c, &n}, err
		}))
	l := newLocker(t, s)
	held := take(t, l, lock.Request{Key: "held"})
	release(t, take(t, l, lock.Request{Key: "k"}))
	other := newLocker(t, connect(t, server(t).Addr))
	theirs := take(t, other, lock.Request{Key: "theirs"})
	for _, tt := range []struct {
		what string
		do   func()
		want int64
	}{
		{"a pair", func() { release(t, take(t, l, lock.Request{Key: "k"})) }, 4},
		{"a pair of a key without a node", func() { release(t, take(t, l, lock.Request{Key: "new" + time.Now().String()})) }, 6},
		{"a pair of read locks", func() { release(t, take(t, l, lock.Request{Key: "held2", Kind: lock.Read})) }, 3},
		{"a try that is refused", func() { busy(t, l, "theirs") }, 4},
		{"a re-entry", func() {
			h, err := l.Acquire(held.Context(), lock.Request{Key: "held"})
			if err != nil {
				t.Fatal(err)
			}
			release(t, h)
		}, 0},
		{"a look", func() {
			if err := l.Peek(t.Context(), lock.Request{Key: "theirs"}); !errors.Is(err, lock.ErrBusy) {
				t.Errorf("Peek() = %v", err)
			}
		}, 1},
	} {
		least := int64(1 << 62)
		for range 5 { // some of which the session's own questions disturb, or the making of a parent
			before := n.Load()
			tt.do()
			least = min(least, n.Load()-before)
		}
		if least != tt.want {
			t.Errorf("%s costs %d questions, want %d", tt.what, least, tt.want)
		}
	}
	release(t, theirs)
	release(t, held)
}
