package zklock_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/zklock"
)

// thief reads along in the handshake of a connection, to close its session from another one.
type thief struct {
	net.Conn
	mu     sync.Mutex
	answer bytes.Buffer
}

func (c *thief) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.answer.Len() < 100 {
		c.answer.Write(p[:n])
	}
	return n, err
}

// end has the server end the session, as if it had expired.
func (c *thief) end(t *testing.T, addr string) {
	t.Helper()
	c.mu.Lock()
	answer := bytes.Clone(c.answer.Bytes())
	c.mu.Unlock()
	other, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	request := binary.BigEndian.AppendUint32(nil, 44) // the length; then the version, the last change seen, the timeout, the session, its password
	request = append(request, make([]byte, 4+8)...)
	request = append(request, answer[8:8+4+8+4+16]...)
	closing := binary.BigEndian.AppendUint32(nil, 8)
	closing = binary.BigEndian.AppendUint32(closing, 1)
	closing = binary.BigEndian.AppendUint32(closing, 0xfffffff5) // -11, close the session
	if _, err := other.Write(append(request, closing...)); err != nil {
		t.Fatal(err)
	}
	_ = other.SetReadDeadline(time.Now().Add(10 * time.Second))
	_, _ = io.ReadAll(other) // until the server has done it
}

// The servers end a session that the process could still rely on for long, and has no reason to doubt.
func TestSessionIsEndedByTheServer(t *testing.T) {
	t.Parallel()
	addr := server(t).Addr
	conns := make(chan *thief, 100)
	s := connect(t, addr, zklock.SessionTimeout(60*time.Second), zklock.Dialer(
		func(network, address string, timeout time.Duration) (net.Conn, error) {
			c, err := net.DialTimeout(network, address, timeout)
			if err != nil {
				return nil, err
			}
			spy := &thief{Conn: c}
			conns <- spy
			return spy, nil
		}))
	l := newLocker(t, s)
	h := take(t, l, lock.Request{Key: "k"})
	reader := take(t, l, lock.Request{Key: "other", Kind: lock.Read})
	waiter := acquire(t, l, lock.Request{Key: "k", Wait: time.Minute})
	soon(t, "two in line", func() bool { return len(inLine(t, root(t)+"/k")) == 2 })
	start := time.Now()
	(<-conns).end(t, addr)
	for _, h := range []lock.Hold{h, reader} {
		if d := ends(t, h).Sub(start); d > 10*time.Second {
			t.Errorf("the hold ends %v after its session, which had a timeout of 60s", d)
		}
		if err := h.Release(t.Context()); !errors.Is(err, lock.ErrLost) {
			t.Errorf("Release() = %v, want %v", err, lock.ErrLost)
		}
	}
	release(t, waiter.held()) // in line again, in the next session
	if names := inLine(t, root(t)+"/k"); len(names) > 0 {
		t.Errorf("%v are left in line", names)
	}
}

func TestCredentialsOfAnUnknownScheme(t *testing.T) {
	t.Parallel()
	l := newLocker(t, connect(t, server(t).Addr, zklock.Auth("nonsense", []byte("x"))))
	soon(t, "a refusal", func() bool {
		_, err := l.Acquire(t.Context(), lock.Request{Key: "k"})
		return errors.Is(err, lock.ErrRefused)
	})
}
