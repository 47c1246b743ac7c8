package middleware

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// Hijack gives the handler a connection that ends with the lock.
func (w *writer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	if err := w.refusal(); err != nil {
		return nil, nil, err
	}
	if w.status != 0 {
		if err := w.open(); err != nil {
			return nil, nil, err
		}
	}
	raw, rw, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	if w.status == 0 {
		w.note(http.StatusSwitchingProtocols)
	}
	c := &conn{Conn: raw, check: w.check, wrote: !w.holds()}
	if rw.Writer.Buffered() == 0 {
		rw.Writer.Reset(c)
	}
	head, _ := rw.Peek(rw.Reader.Buffered()) // what the client has sent already
	rw.Reader.Reset(io.MultiReader(bytes.NewReader(bytes.Clone(head)), c))
	w.mu.Lock()
	w.conn, w.phase = c, hijacked
	w.mu.Unlock()
	w.watch()
	return c, rw, nil
}

// lostAnswer is what a client gets that would otherwise get nothing: it would send the request again.
const lostAnswer = "HTTP/1.1 500 Internal Server Error\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"

// conn is a hijacked connection. After a loss its deadlines stay in the past, whatever its user sets.
type conn struct {
	net.Conn
	check func() // calls lose if the lock was lost; nothing once the handler has returned

	mu    sync.Mutex
	lost  error
	newer error // what reads return, as a newer request takes the place of this one
	begun bool  // to write
	wrote bool  // at least a byte
	grace *time.Timer
}

// lose ends reads and writes.
func (c *conn) lose(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lost != nil {
		return
	}
	c.lost = err
	if c.begun && !c.wrote {
		_ = c.Conn.SetReadDeadline(past)
		c.grace = time.AfterFunc(firstByte, func() { _ = c.Conn.SetDeadline(past) })
		return
	}
	c.endLocked()
}

// endReads makes reads fail with err. The handler can still take its leave.
func (c *conn) endReads(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.newer = err
	_ = c.Conn.SetReadDeadline(past)
}

func (c *conn) endLocked() {
	if !c.wrote {
		_ = c.Conn.SetWriteDeadline(time.Now().Add(firstByte))
		_, _ = io.WriteString(c.Conn, lostAnswer)
	}
	_ = c.Conn.SetDeadline(past)
}

// over is why nothing more is read: the loss of the lock, or a newer request.
func (c *conn) over() error {
	c.check()
	c.mu.Lock()
	defer c.mu.Unlock()
	return cmp.Or(c.lost, c.newer)
}

func (c *conn) Read(p []byte) (int, error) {
	if err := c.over(); err != nil {
		return 0, err
	}
	n, err := c.Conn.Read(p)
	return n, c.blame(err)
}

func (c *conn) Write(p []byte) (n int, err error) {
	if err := c.begin(); err != nil {
		return 0, err
	}
	n, err = c.Conn.Write(p)
	return n, c.after(n > 0, err)
}

// ReadFrom lets files go to the socket without a copy.
func (c *conn) ReadFrom(src io.Reader) (n int64, err error) {
	if err := c.begin(); err != nil {
		return 0, err
	}
	n, err = io.Copy(c.Conn, src)
	return n, c.after(n > 0, err)
}

func (c *conn) begin() error {
	c.check()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lost == nil {
		c.begun = true
	}
	return c.lost
}

// after ends the connection if its lock was lost while the first bytes were written.
func (c *conn) after(wrote bool, err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wrote = c.wrote || wrote
	if c.grace != nil && c.grace.Stop() {
		c.endLocked()
	}
	if err != nil && c.lost != nil {
		return c.lost
	}
	return err
}

func (c *conn) blame(err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case err != nil && c.lost != nil:
		return c.lost
	case err != nil && !errors.Is(err, io.EOF) && c.newer != nil:
		return c.newer
	}
	return err
}

// Close comes after the answer to a loss.
func (c *conn) Close() error {
	c.check()
	return c.Conn.Close()
}

func (c *conn) SetDeadline(t time.Time) error      { return c.setDeadline(c.Conn.SetDeadline, t) }
func (c *conn) SetReadDeadline(t time.Time) error  { return c.setDeadline(c.Conn.SetReadDeadline, t) }
func (c *conn) SetWriteDeadline(t time.Time) error { return c.setDeadline(c.Conn.SetWriteDeadline, t) }

func (c *conn) setDeadline(set func(time.Time) error, t time.Time) error {
	c.check()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lost != nil {
		return c.lost
	}
	return set(t)
}

// CloseWrite passes on what connections of TCP and TLS can do.
func (c *conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return http.ErrNotSupported
}

// NetConn returns the connection below, as that of [crypto/tls.Conn] does. What is done to it, the loss of the lock can't
// prevent.
func (c *conn) NetConn() net.Conn { return c.Conn }
