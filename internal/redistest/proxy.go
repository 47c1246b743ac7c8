package redistest

import (
	"bytes"
	"net"
	"slices"
	"sync"
	"testing"
	"time"
)

// Proxy stands between a client and a server and breaks what passes.
type Proxy struct {
	*Relay
	reading sync.WaitGroup

	mu     sync.Mutex
	delay  time.Duration
	cut    []byte        // a request with this in it loses its answer
	cuts   int           // how often that is still to happen
	lates  []*Late       // still to be taken
	frozen chan struct{} // while not nil, nothing passes until it is closed
}

// Front starts a proxy in front of s and stops it when the test ends.
func (s *Server) Front(tb testing.TB) *Proxy {
	tb.Helper()
	p := &Proxy{}
	var err error
	if p.Relay, err = Listen(s.Addr, p.link); err != nil {
		tb.Fatalf("redistest: %v", err)
	}
	tb.Cleanup(p.close)
	return p
}

// link begins to carry between two connections.
func (p *Proxy) link(client, server net.Conn) (up, down func()) {
	l := &link{p: p, client: client, server: server, ended: make(chan struct{})}
	return func() { l.carry(server, client, l.request) }, func() { l.carry(client, server, l.reply) }
}

// CutReply lets the next n requests that contain part reach the server, waits for the answer, and closes the connection
// instead of passing it on: the server has done what the client does not know of.
func (p *Proxy) CutReply(part string, n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut, p.cuts = []byte(part), n
}

// Cuts returns how many of the requests given to CutReply are still to come.
func (p *Proxy) Cuts() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cuts
}

// Freeze swallows all traffic in both directions, without closing anything, until Thaw.
func (p *Proxy) Freeze() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.frozen == nil {
		p.frozen = make(chan struct{})
	}
}

// Thaw lets traffic pass again; what was held back arrives now.
func (p *Proxy) Thaw() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.frozen != nil {
		close(p.frozen)
		p.frozen = nil
	}
}

// Delay has all that arrives from now on take d longer, on the way to the server as well as back.
func (p *Proxy) Delay(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = d
}

func (p *Proxy) close() {
	p.Thaw()
	p.Close()
	p.reading.Wait()
}

// due returns when a piece that arrives now may go on.
func (p *Proxy) due() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return time.Now().Add(p.delay)
}

// pass blocks while the proxy is frozen.
func (p *Proxy) pass() {
	p.mu.Lock()
	frozen := p.frozen
	p.mu.Unlock()
	if frozen != nil {
		<-frozen
	}
}

// match reports whether the request in b is to lose its answer, and returns what is to keep it or its answer back.
func (p *Proxy) match(b []byte) (cut bool, late *Late) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range p.lates {
		switch {
		case !bytes.Contains(b, l.part):
		case l.skip > 0:
			l.skip--
		case late == nil:
			late = l
		}
	}
	if late != nil {
		p.lates = slices.DeleteFunc(p.lates, func(l *Late) bool { return l == late })
		return false, late
	}
	if p.cuts == 0 || !bytes.Contains(b, p.cut) {
		return false, nil
	}
	p.cuts--
	return true, nil
}
