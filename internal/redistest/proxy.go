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
	// Addr is where clients connect.
	Addr string

	target    string
	listener  net.Listener
	accepting sync.WaitGroup
	links     sync.WaitGroup

	mu       sync.Mutex
	conns    map[net.Conn]struct{}
	accepted int
	delay    time.Duration
	cut      []byte        // a request with this in it loses its answer
	cuts     int           // how often that is still to happen
	lates    []*Late       // still to be taken
	frozen   chan struct{} // while not nil, nothing passes until it is closed
}

// Front starts a proxy in front of s and stops it when the test ends.
func (s *Server) Front(tb testing.TB) *Proxy {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatalf("redistest: %v", err)
	}
	p := &Proxy{Addr: l.Addr().String(), target: s.Addr, listener: l, conns: map[net.Conn]struct{}{}}
	p.accepting.Go(p.accept)
	tb.Cleanup(p.close)
	return p
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

// Connections returns how many connections clients have open now, and how many they have made so far.
func (p *Proxy) Connections() (open, made int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.conns) / 2, p.accepted
}

// Drop closes all connections that are open now. What they still carry is lost.
func (p *Proxy) Drop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		_ = c.Close()
	}
}

func (p *Proxy) close() {
	_ = p.listener.Close()
	p.accepting.Wait()
	p.Thaw()
	p.Drop()
	p.links.Wait()
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.target)
		if err != nil {
			_ = client.Close()
			continue
		}
		l := &link{p: p, client: client, server: server, ended: make(chan struct{})}
		p.track(client, server)
		p.links.Go(func() { l.carry(server, client, l.request) })
		p.links.Go(func() { l.carry(client, server, l.reply) })
	}
}

func (p *Proxy) track(client, server net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conns[client], p.conns[server] = struct{}{}, struct{}{}
	p.accepted++
}

func (p *Proxy) forget(client, server net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, client)
	delete(p.conns, server)
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
