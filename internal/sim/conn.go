package sim

import (
	"bytes"
	"io"
	"net"
	"os"
	"slices"
	"time"
)

// conn is a client's end of a connection. All its fields but the first three are guarded by the network's mutex.
//
// Nothing sleeps in Read or Write but Read itself, which waits for a channel: go-redis holds a mutex in places, and a
// goroutine that waits for a mutex keeps virtual time from passing.
type conn struct {
	n        *Network
	client   int
	readable chan struct{} // something that Read waits for may have happened

	server   *peer
	unsent   []byte // the beginning of a command
	received []byte // arrived, and not read yet
	broken   error  // what Read returns after that
	hole     bool   // nothing gets through any more, in either direction, and nobody is told
	closed   bool   // by the client
	deadline time.Time
	stamp    uint64 // of what was last written

	subscriber bool
	channels   []string
	up, down   time.Duration // when the last thing in that direction arrives
}

func newConn(n *Network, client int) *conn {
	return &conn{n: n, client: client, readable: make(chan struct{}, 1), server: newPeer()}
}

// Read implements [net.Conn].
func (c *conn) Read(b []byte) (int, error) {
	for {
		size, until, err := c.read(b)
		if size > 0 || err != nil {
			return size, err
		}
		c.await(until)
	}
}

// read returns what there is to read; if it returns nothing, Read is to wait for more until the given time.
func (c *conn) read(b []byte) (int, time.Time, error) {
	c.n.mu.Lock()
	defer c.n.mu.Unlock()
	switch {
	case c.closed:
		return 0, time.Time{}, net.ErrClosed
	case len(c.received) > 0:
		size := copy(b, c.received)
		c.received = c.received[size:]
		return size, time.Time{}, nil
	case c.broken != nil:
		return 0, time.Time{}, c.broken
	case c.deadline.IsZero():
		return 0, time.Time{}, nil
	}
	// A little later than asked for: the deadline of a context often is the same, and what happens first must not be left
	// to the scheduler.
	until := c.deadline.Add(time.Duration(1 + c.stamp%997))
	if !time.Now().Before(until) {
		return 0, until, os.ErrDeadlineExceeded
	}
	return 0, until, nil
}

func (c *conn) await(until time.Time) {
	if until.IsZero() {
		<-c.readable
		return
	}
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-c.readable:
	case <-timer.C:
	}
}

// Write implements [net.Conn].
func (c *conn) Write(b []byte) (int, error) {
	c.n.mu.Lock()
	defer c.n.mu.Unlock()
	switch {
	case c.closed:
		return 0, net.ErrClosed
	case c.broken != nil:
		return 0, &net.OpError{Op: "write", Net: "sim", Err: io.ErrClosedPipe}
	}
	if c.stamp = hash(0, string(b)); bytes.Contains(b, []byte("subscribe")) || c.subscriber {
		c.stamp = uint64(c.client) // the order of channels differs between runs
	}
	if rest := c.handshake(b); len(rest) > 0 {
		c.n.wrote(c, string(rest))
	}
	return len(b), nil
}

// handshake answers at once what a new connection begins with: go-redis makes it under a mutex. It returns the rest.
func (c *conn) handshake(b []byte) (rest []byte) {
	for {
		args, size := parse(b)
		if args == nil || !greeting(args[0]) {
			return b
		}
		b = b[size:]
		c.receive(c.n.server.run(c.server, args))
	}
}

// Close implements [net.Conn]. What was written before still arrives.
func (c *conn) Close() error {
	c.n.mu.Lock()
	defer c.n.mu.Unlock()
	if c.closed {
		return net.ErrClosed
	}
	c.closed = true
	c.leave()
	c.signal()
	return nil
}

// cutLocked ends the connection from outside. With a nil reason nobody notices: nothing gets through any more.
func (c *conn) cutLocked(reason error) {
	c.hole = true
	if reason == nil || c.broken != nil {
		return
	}
	c.broken = reason
	c.leave()
	c.signal()
}

// leave takes c out of the network.
func (c *conn) leave() {
	c.channels = nil
	c.n.conns = slices.DeleteFunc(c.n.conns, func(o *conn) bool { return o == c })
}

// receive lets b arrive at the client.
func (c *conn) receive(b string) {
	if c.closed || c.hole {
		return
	}
	c.received = append(c.received, b...)
	c.signal()
}

func (c *conn) signal() {
	select {
	case c.readable <- struct{}{}:
	default:
	}
}

// SetReadDeadline implements [net.Conn].
func (c *conn) SetReadDeadline(t time.Time) error {
	c.n.mu.Lock()
	defer c.n.mu.Unlock()
	c.deadline = t
	c.signal()
	return nil
}

// SetDeadline implements [net.Conn].
func (c *conn) SetDeadline(t time.Time) error { return c.SetReadDeadline(t) }

// SetWriteDeadline implements [net.Conn]. A Write never blocks.
func (c *conn) SetWriteDeadline(time.Time) error { return nil }

// LocalAddr implements [net.Conn].
func (c *conn) LocalAddr() net.Addr { return addr{} }

// RemoteAddr implements [net.Conn].
func (c *conn) RemoteAddr() net.Addr { return addr{} }

type addr struct{}

func (addr) Network() string { return "sim" }
func (addr) String() string  { return "sim" }
