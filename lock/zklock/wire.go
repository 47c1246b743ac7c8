package zklock

import (
	"encoding/binary"
	"net"
	"time"
)

// wire is a connection to a server. The client library keeps to itself what the server has granted, and when the
// question for that was sent; so the wire reads along in the handshake, which is the first thing that each side sends.
// Its methods are called as those of any connection; the handshake is over before two goroutines use it.
type wire struct {
	net.Conn
	patience time.Duration // with a server that takes connections, but does not answer
	attached func(sent time.Time, session int64, timeout time.Duration)

	sent   time.Time
	answer []byte
}

// The answer to a handshake begins with its length and the version of the protocol, the timeout in milliseconds and the session, which
// is 0 if it has expired.
const handshake = 4 + 4 + 4 + 8

// Write implements [net.Conn].
func (w *wire) Write(p []byte) (int, error) {
	if w.sent.IsZero() {
		w.sent = time.Now()
	}
	return w.Conn.Write(p)
}

// Read implements [net.Conn].
func (w *wire) Read(p []byte) (int, error) {
	n, err := w.Conn.Read(p)
	if len(w.answer) < handshake && n > 0 {
		w.answer = append(w.answer, p[:min(n, handshake-len(w.answer))]...)
		if len(w.answer) == handshake {
			timeout := time.Duration(binary.BigEndian.Uint32(w.answer[8:])) * time.Millisecond
			w.attached(w.sent, int64(binary.BigEndian.Uint64(w.answer[12:])), timeout)
		}
	}
	return n, err
}

// SetReadDeadline implements [net.Conn]. In the handshake, the library would wait for a silent server for more than six times the
// session's timeout, while other servers could still save the session.
func (w *wire) SetReadDeadline(t time.Time) error {
	if last := time.Now().Add(w.patience); len(w.answer) < handshake && !t.IsZero() && t.After(last) {
		t = last
	}
	return w.Conn.SetReadDeadline(t)
}
