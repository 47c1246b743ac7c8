package middleware

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"time"
)

// Hijack gives the handler a connection that ends with the lock.
func (w *writer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	if err := w.refusal(); err != nil {
		return nil, nil, err
	}
	if w.status != 0 {
		if _, err := w.open(nil); err != nil {
			return nil, nil, err
		}
		w.sendHeader()
	}
	raw, rw, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	c := &conn{raw, w}
	if rw.Writer.Buffered() == 0 {
		rw.Writer.Reset(c)
	}
	head, _ := rw.Peek(rw.Reader.Buffered()) // what the client has sent already
	rw.Reader.Reset(io.MultiReader(bytes.NewReader(bytes.Clone(head)), c))
	_, _ = rw.Peek(len(head)) // so that it is buffered again
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.status == 0 {
		w.status = http.StatusSwitchingProtocols
	}
	w.link, w.hijacked = raw, true
	_ = w.lossLocked()
	w.enforceLocked() // the server has lifted the deadlines
	return c, rw, nil
}

// lostAnswer is what a client gets that would otherwise get nothing: it would send the request again.
const lostAnswer = "HTTP/1.1 500 Internal Server Error\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"

// answerLocked sends it, after a loss, to a client that has not a byte.
func (w *writer) answerLocked() {
	if w.lost == nil || w.phase != holding {
		return
	}
	w.phase = open
	_ = w.linkLocked().SetWriteDeadline(time.Now().Add(firstByte))
	if c, ok := w.link.(io.Writer); ok {
		_, _ = io.WriteString(c, lostAnswer)
	}
}

// conn is a hijacked connection. After a loss nothing more is read or written.
type conn struct {
	net.Conn
	w *writer
}

func (c *conn) Read(p []byte) (int, error) {
	if err := c.w.over(); err != nil {
		return 0, err
	}
	n, err := c.Conn.Read(p)
	return n, c.w.blameRead(err)
}

func (c *conn) Write(p []byte) (int, error) {
	if _, err := c.w.opens(); err != nil {
		return 0, err
	}
	n, err := c.Conn.Write(p)
	if refused := c.w.opened(nil); err != nil && refused != nil {
		err = refused
	}
	return n, err
}

// Close comes after the answer to a loss.
func (c *conn) Close() error {
	_ = c.w.loss()
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	c.w.answerLocked()
	return c.Conn.Close()
}

// CloseWrite is that of the connection below, which those of TCP and TLS have.
func (c *conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return http.ErrNotSupported
}

// NetConn returns the connection below, as that of [crypto/tls.Conn] does. The loss of the lock does not end reads and
// writes on that.
func (c *conn) NetConn() net.Conn { return c.Conn }
