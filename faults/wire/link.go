package wire

import (
	"bufio"
	"errors"
	"io"
	"net"
	"strconv"
	"sync"
)

// link is a client's connection and the server's behind it.
type link struct {
	p              *Proxy
	client, server net.Conn

	mu     sync.Mutex
	doomed bool // the next reply ends the link
	silent bool // nothing comes back any more
}

// requests passes on what the client sends.
func (l *link) requests() {
	r, w := bufio.NewReaderSize(l.client, 64<<10), bufio.NewWriterSize(l.server, 64<<10)
	for {
		request, err := readRequest(r)
		if err != nil {
			return
		}
		s, struck := l.p.hit(request)
		pass, open := true, true
		if struck {
			pass, open = l.strike(s, request)
		}
		if pass {
			_, _ = w.Write(request) // the writer keeps the error
		}
		if !open || r.Buffered() == 0 {
			if w.Flush() != nil {
				return
			}
		}
		switch {
		case struck && s.Action == SwallowRequest, !open && pass: // no other request goes on
			_, _ = io.Copy(io.Discard, r)
			return
		case !open:
			return
		}
	}
}

// strike reports whether the request goes on, and whether the connection does.
func (l *link) strike(s Strike, request []byte) (pass, open bool) {
	switch s.Action {
	case LoseRequest:
		return false, false
	case SwallowRequest:
		l.set(false, true)
		return false, true
	case LoseReply:
		l.set(true, false)
		return true, false
	case SwallowReply:
		l.set(false, true)
		return true, true
	case Late:
		l.p.deliver(request, s.Delay())
		return false, false
	case LateReplyLost:
		l.p.deliver(request, s.Delay())
		l.set(true, false)
		return true, false
	case LateCopy:
		l.p.deliver(request, s.Delay())
	case Twice:
		l.p.deliver(request, 0)
	}
	return true, true
}

func (l *link) set(doomed, silent bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.doomed, l.silent = l.doomed || doomed, l.silent || silent
}

// replies passes on what the server sends.
func (l *link) replies() {
	buf := make([]byte, 64<<10)
	for {
		n, err := l.server.Read(buf)
		if err != nil {
			return
		}
		l.mu.Lock()
		doomed, silent := l.doomed, l.silent
		l.mu.Unlock()
		switch {
		case doomed:
			return
		case silent:
			continue
		}
		if _, err := l.client.Write(buf[:n]); err != nil {
			return
		}
	}
}

func (l *link) end() {
	_, _ = l.client.Close(), l.server.Close()
	l.p.mu.Lock()
	defer l.p.mu.Unlock()
	delete(l.p.conns, l.client)
	delete(l.p.conns, l.server)
}

var errProtocol = errors.New("not a request in RESP")

// maxBulk bounds what a client may send as one argument.
const maxBulk = 64 << 20

// readRequest reads an array of bulk strings, which is what clients send, and returns its bytes:
//
//	request = "*" count CRLF { "$" length CRLF bytes CRLF }
func readRequest(r *bufio.Reader) (request []byte, err error) {
	request, n, err := readNumber(r, request, '*')
	for i := 0; err == nil && i < n; i++ {
		var length int
		if request, length, err = readNumber(r, request, '$'); err != nil {
			return nil, err
		}
		if length < 0 || length > maxBulk {
			return nil, errProtocol
		}
		start := len(request)
		request = append(request, make([]byte, length+2)...)
		_, err = io.ReadFull(r, request[start:])
	}
	return request, err
}

func readNumber(r *bufio.Reader, before []byte, kind byte) (after []byte, n int, err error) {
	line, err := r.ReadSlice('\n')
	if err != nil {
		return before, 0, err
	}
	if len(line) < 3 || line[0] != kind {
		return before, 0, errProtocol
	}
	n, err = strconv.Atoi(string(line[1 : len(line)-2]))
	return append(before, line...), n, err
}
