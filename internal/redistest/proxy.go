package redistest

import (
	"bytes"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
)

// Proxy stands between a client and a server and breaks what passes.
type Proxy struct {
	// Addr is where clients connect.
	Addr string

	target   string
	listener net.Listener
	wg       sync.WaitGroup

	mu     sync.Mutex
	conns  map[net.Conn]struct{}
	cut    []byte        // a request with this in it loses its answer
	cuts   int           // how often that is still to happen
	frozen chan struct{} // while not nil, nothing passes until it is closed
}

// Front starts a proxy in front of s and stops it when the test ends.
func (s *Server) Front(tb testing.TB) *Proxy {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatalf("redistest: %v", err)
	}
	p := &Proxy{Addr: l.Addr().String(), target: s.Addr, listener: l, conns: map[net.Conn]struct{}{}}
	p.wg.Go(p.accept)
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

// Cuts tells how many of the requests given to CutReply are still to come.
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

// Drop closes all connections that are open now.
func (p *Proxy) Drop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		_ = c.Close()
	}
}

func (p *Proxy) close() {
	_ = p.listener.Close()
	p.Thaw()
	p.Drop()
	p.wg.Wait()
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
		link := &link{p: p, client: client, server: server}
		p.track(client, server)
		p.wg.Go(link.requests)
		p.wg.Go(link.replies)
	}
}

func (p *Proxy) track(conns ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		p.conns[c] = struct{}{}
	}
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

// link is one client connection and the server connection behind it.
type link struct {
	p              *Proxy
	client, server net.Conn
	mu             sync.Mutex
	doomed         bool
}

func (l *link) requests() {
	defer l.close()
	_ = pump(l.server, l.client, func(b []byte) error {
		l.p.pass()
		if l.p.take(b) {
			l.mu.Lock()
			l.doomed = true
			l.mu.Unlock()
		}
		return nil
	})
}

func (l *link) replies() {
	defer l.close()
	_ = pump(l.client, l.server, func([]byte) error {
		l.p.pass()
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.doomed {
			return errors.New("cut")
		}
		return nil
	})
}

// take tells whether the request in b is to lose its answer.
func (p *Proxy) take(b []byte) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cuts == 0 || !bytes.Contains(b, p.cut) {
		return false
	}
	p.cuts--
	return true
}

func (l *link) close() {
	_ = l.client.Close()
	_ = l.server.Close()
	l.p.mu.Lock()
	defer l.p.mu.Unlock()
	delete(l.p.conns, l.client)
	delete(l.p.conns, l.server)
}

// pump copies until either side ends, showing each piece to look before it is passed on.
func pump(dst io.Writer, src io.Reader, look func([]byte) error) error {
	buf := make([]byte, 64<<10)
	for {
		n, err := src.Read(buf)
		if n > 0 {
			if err := look(buf[:n]); err != nil {
				return err
			}
			if _, err := dst.Write(buf[:n]); err != nil {
				return err
			}
		}
		if err != nil {
			return err
		}
	}
}
