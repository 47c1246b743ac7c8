package redistest

import (
	"net"
	"sync"
	"time"
)

// link is one client connection of a proxy and the server connection behind it.
type link struct {
	p              *Proxy
	client, server net.Conn
	ended          chan struct{} // closed when the link is to end

	mu     sync.Mutex
	over   bool
	doomed bool  // the next reply ends the link
	silent bool  // no request goes on any more
	late   *Late // what takes the next reply
}

// piece is what was read at once.
type piece struct {
	bytes []byte
	due   time.Time
}

// action is what is done with a piece.
type action int

const (
	forward action = iota
	discard
	hangUp // close both connections
)

// carry copies until either side ends, and asks look about each piece before it goes on.
func (l *link) carry(dst, src net.Conn, look func([]byte) action) {
	defer l.end()
	pieces := make(chan piece, 64)
	l.p.reading.Go(func() { l.read(src, pieces) })
	for pc := range pieces {
		time.Sleep(time.Until(pc.due))
		l.p.pass()
		var err error
		switch look(pc.bytes) {
		case forward:
			_, err = dst.Write(pc.bytes)
		case discard:
		case hangUp:
			return
		}
		if err != nil {
			return
		}
	}
}

// read goes on while earlier pieces are delayed, so that each is delayed by itself.
func (l *link) read(src net.Conn, pieces chan<- piece) {
	defer close(pieces)
	for {
		buf := make([]byte, 64<<10)
		n, err := src.Read(buf)
		if err != nil {
			return
		}
		select {
		case pieces <- piece{buf[:n], l.p.due()}:
		case <-l.ended:
			return
		}
	}
}

// request decides about a piece on its way to the server.
func (l *link) request(b []byte) action {
	cut, late := l.p.match(b)
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.silent:
		return discard
	case late == nil:
		l.doomed = l.doomed || cut
		return forward
	case late.reply && l.over:
		l.p.keepAgain(late)
		return hangUp
	case late.reply:
		l.late = late
		return forward
	}
	late.take(b)
	if late.silent {
		l.silent = true
		return discard
	}
	return hangUp
}

// reply decides about a piece on its way back.
func (l *link) reply(b []byte) action {
	l.mu.Lock()
	doomed, late := l.doomed, l.late
	l.late = nil
	l.mu.Unlock()
	if doomed {
		return hangUp
	}
	if late != nil {
		late.take(b)
		select {
		case <-late.delivered:
		case <-l.ended:
		}
	}
	return forward
}

// end has both directions end; the relay closes the connections. An answer that was to be kept back and has not come is that of
// the next such request: a client that was too slow for its own timeout asks again.
func (l *link) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return
	}
	l.over = true
	close(l.ended)
	if l.late != nil {
		l.p.keepAgain(l.late)
		l.late = nil
	}
}
