package wire

import (
	"bufio"
	"io"
	"net"
	"sync"

	"github.com/latchkey-go/latchkey/internal/redistest"
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
		request, words, err := redistest.ReadRequest(r)
		if err != nil {
			return
		}
		s, struck := l.p.hit(words)
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
