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

	"github.com/latchkey-go/latchkey/internal/services"
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

// spied has connections made by thieves, while nobody has the mutex.
func spied(conns chan<- *thief, mu *sync.Mutex) zklock.SessionOption {
	return zklock.Dialer(func(network, address string, timeout time.Duration) (net.Conn, error) {
		mu.Lock()
		defer mu.Unlock()
		c, err := net.DialTimeout(network, address, timeout)
		if err != nil {
			return nil, err
		}
		spy := &thief{Conn: c}
		conns <- spy
		return spy, nil
	})
}

// attach opens another connection of the session, and sends requests on it.
func (c *thief) attach(t *testing.T, addr string, requests ...byte) net.Conn {
	t.Helper()
	c.mu.Lock()
	answer := bytes.Clone(c.answer.Bytes())
	c.mu.Unlock()
	other, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = other.Close() })
	request := binary.BigEndian.AppendUint32(nil, 44) // the length; then the version, the last change seen, the timeout, the session, its password
	request = append(request, make([]byte, 4+8)...)
	request = append(request, answer[8:8+4+8+4+16]...)
	_ = other.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := other.Write(append(request, requests...)); err != nil {
		t.Fatal(err)
	}
	return other
}

// end has the server end the session, as if it had expired.
func (c *thief) end(t *testing.T, addr string) {
	t.Helper()
	closing := binary.BigEndian.AppendUint32(nil, 8)
	closing = binary.BigEndian.AppendUint32(closing, 1)
	closing = binary.BigEndian.AppendUint32(closing, 0xfffffff5) // -11, close the session
	_, _ = io.ReadAll(c.attach(t, addr, closing...))             // until the server has done it
}

// The servers end a session that the process could still rely on for long, and has no reason to doubt.
func TestSessionIsEndedByTheServer(t *testing.T) {
	t.Parallel()
	addr := server(t).Addr
	conns := make(chan *thief, 100)
	var ending sync.Mutex // or the client would take the session back from the thief
	s := connect(t, addr, zklock.SessionTimeout(60*time.Second), spied(conns, &ending))
	l := newLocker(t, s)
	h := take(t, l, lock.Request{Key: "k"})
	reader := take(t, l, lock.Request{Key: "other", Kind: lock.Read})
	waiter := acquire(t, l, lock.Request{Key: "k", Wait: time.Minute})
	soon(t, "two in line", func() bool { return len(inLine(t, root(t)+"/k")) == 2 })
	start := time.Now()
	ending.Lock()
	(<-conns).end(t, addr)
	ending.Unlock()
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

// A server whose client has gone to another one says so to what comes late, and ends the connection. The session lives, and its client takes
// it back at once.
func TestSessionThatHasMoved(t *testing.T) {
	t.Parallel()
	leader, followers := ensemble(t, services.Options{Args: []string{"maxSessionTimeout=20000"}})
	conns := make(chan *thief, 100)
	s, err := zklock.Connect([]string{followers[0].Addr}, zklock.SessionTimeout(20*time.Second), spied(conns, &sync.Mutex{}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	l := newLocker(t, s)
	h := afterOutage(t, l, lock.Request{Key: "k"})
	if n := len(conns); n != 1 {
		t.Fatalf("%d connections", n)
	}
	other := (<-conns).attach(t, leader.Addr)
	if _, err := io.ReadFull(other, make([]byte, 4+4+4+8)); err != nil { // it is there now
		t.Fatal(err)
	}
	start := time.Now()
	again, err := l.Acquire(t.Context(), lock.Request{Key: "other"})
	if took := time.Since(start); err != nil || len(conns) != 1 || took > time.Second {
		t.Fatalf("Acquire() = %v after %v and %d new connections", err, took, len(conns))
	}
	alive(t, h)
	release(t, again)
	release(t, h)
}

func TestCredentialsOfAnUnknownScheme(t *testing.T) {
	t.Parallel()
	l := newLocker(t, connect(t, server(t).Addr, zklock.Auth("nonsense", []byte("x"))))
	soon(t, "a refusal", func() bool {
		_, err := l.Acquire(t.Context(), lock.Request{Key: "k"})
		return errors.Is(err, lock.ErrRefused)
	})
}
