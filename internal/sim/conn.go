package sim

import (
	"io"
	"net"
	"os"
	"slices"
	"time"
)

// conn is a client's end of a connection. All fields but the first three are guarded by the network's mutex.
//
// Write never blocks, and Read waits for nothing but a channel: go-redis holds mutexes around both, and a goroutine that waits
// for a mutex keeps virtual time from passing.
type conn struct {
	n        *Network
	client   int
	readable chan struct{} // what Read waits for may have happened

	peer       *peer
	unsent     []byte // the beginning of a command
	received   []byte // arrived, and not read yet
	broken     error  // what Read returns after that
	demoted    bool   // it leads to a replica
	hole       bool   // nothing gets through any more, in either direction
	closed     bool   // by the client
	deadline   time.Time
	jitter     time.Duration // by which Read is late
	subscriber bool
	channels   []string
	requests   []*message    // on their way to the server
	answers    []string      // on their way back
	up, down   time.Duration // when the last of these arrives
}

func newConn(n *Network, client int) *conn {
	return &conn{n: n, client: client, readable: make(chan struct{}, 1), peer: newPeer()}
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

// read returns what there is to read. If there is nothing, Read is to wait until the given time; zero is for ever.
func (c *conn) read(b []byte) (size int, until time.Time, err error) {
	c.n.mu.Lock()
	defer c.n.mu.Unlock()
	if !c.deadline.IsZero() {
		until = c.deadline.Add(c.jitter)
	}
	switch {
	case c.closed:
		err = net.ErrClosed
	case len(c.received) > 0:
		size = copy(b, c.received)
		c.received = c.received[size:]
	case c.broken != nil:
		err = c.broken
	case !until.IsZero() && !time.Now().Before(until):
		err = os.ErrDeadlineExceeded
	}
	return size, until, err
}

// await waits until there may be something to read.
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
	c.jitter = c.newJitter()
	if rest := c.handshake(b); len(rest) > 0 {
		c.n.wrote(c, string(rest))
	}
	return len(b), nil
}

// newJitter is by how much a Read that follows a Write is late. The deadline of a context and of a Read are often the same, and
// what happens first must not be left to the scheduler. It does not follow from what is written, which may differ between runs.
func (c *conn) newJitter() time.Duration {
	return time.Duration(1 + hash(uint64(c.client), c.n.Since().String())%997)
}

// handshake answers at once what a new connection begins with: go-redis makes it under a mutex. It returns the rest.
func (c *conn) handshake(b []byte) (rest []byte) {
	for {
		args, size := parse(b)
		if args == nil || !greeting(args[0]) {
			return b
		}
		b = b[size:]
		c.receive(c.n.server.run(c.peer, args))
	}
}

// Close implements [net.Conn]. Data that were written before still arrive.
func (c *conn) Close() error {
	c.n.mu.Lock()
	defer c.n.mu.Unlock()
	if c.closed {
		return net.ErrClosed
	}
	c.closed = true
	c.leave()
	return nil
}

// cut ends the connection from outside. With a nil reason nobody notices that nothing gets through any more.
func (c *conn) cut(reason error) {
	c.hole = true
	if reason != nil && c.broken == nil {
		c.broken = reason
		c.leave()
	}
}

// leave takes c out of the network.
func (c *conn) leave() {
	c.channels = nil
	c.n.conns = slices.DeleteFunc(c.n.conns, func(o *conn) bool { return o == c })
	c.signal()
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

// SetWriteDeadline implements [net.Conn].
func (c *conn) SetWriteDeadline(time.Time) error { return nil }

// LocalAddr implements [net.Conn].
func (c *conn) LocalAddr() net.Addr { return &net.UnixAddr{Name: "sim", Net: "sim"} }

// RemoteAddr implements [net.Conn].
func (c *conn) RemoteAddr() net.Addr { return c.LocalAddr() }
