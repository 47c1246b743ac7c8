// Package wire is a proxy that understands the protocol of Redis, and loses, delays or repeats single requests and replies.
package wire

import (
	"bufio"
	"bytes"
	"net"
	"sync"
	"time"
)

// Action is what is done to a request.
type Action int

// The actions. Each but Twice ends the connection, as a connection can't lose what lies in the middle of it.
const (
	// LoseRequest closes the connection in place of passing the request on.
	LoseRequest Action = iota
	// SwallowRequest loses the request, and keeps the connection open: nothing passes any more.
	SwallowRequest
	// LoseReply passes the request on, and closes the connection in place of passing on the reply.
	LoseReply
	// SwallowReply passes the request on, and keeps the connection open: nothing comes back any more.
	SwallowReply
	// Late closes the connection, and brings the request to the server later, on another connection.
	Late
	// LateCopy passes the request on and its reply back, and brings a copy of it to the server later, on another connection.
	LateCopy
	// LateReplyLost is LoseReply, and a copy of the request comes to the server later.
	LateReplyLost
	// Twice passes the request on and its reply back, and brings a copy of it to the server at once, on another connection.
	Twice
)

// Strike says which requests are struck, and how.
type Strike struct {
	Action Action
	// Every has one of so many scripts struck; 1 strikes all of them.
	Every int
	// Most is how many are struck at most; 0 sets no bound.
	Most int
	// Delay returns how late a request is that comes late.
	Delay func() time.Duration
}

// Proxy stands between clients and a server.
type Proxy struct {
	// Addr is where clients connect.
	Addr string

	listener net.Listener
	wg       sync.WaitGroup

	mu     sync.Mutex
	target string
	conns  map[net.Conn]bool // nil once the proxy is closed
	strike *Strike
	seen   int
	struck int
	late   int // copies that are under way
}

// Listen returns a proxy in front of the server at target, on a free port.
func Listen(target string) (*Proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{Addr: l.Addr().String(), listener: l, target: target, conns: map[net.Conn]bool{}}
	p.wg.Go(p.accept)
	return p, nil
}

// Begin strikes requests until End.
func (p *Proxy) Begin(s Strike) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.strike, p.seen, p.struck = &s, 0, 0
}

// End stops that, and returns how many requests were struck. What is late is still to come; see Pending.
func (p *Proxy) End() (struck int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.strike = nil
	return p.struck
}

// Pending returns how many late requests have not come to the server yet.
func (p *Proxy) Pending() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.late
}

// Move has new connections go to another server, and ends those that there are.
func (p *Proxy) Move(target string) {
	p.mu.Lock()
	p.target = target
	p.mu.Unlock()
	p.Drop()
}

// Drop ends all connections.
func (p *Proxy) Drop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		_ = c.Close()
	}
}

// Close ends the proxy. Late requests are lost.
func (p *Proxy) Close() {
	_ = p.listener.Close()
	p.Drop()
	p.mu.Lock()
	p.conns = nil
	p.mu.Unlock()
	p.wg.Wait()
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.mu.Lock()
		target := p.target
		p.mu.Unlock()
		server, err := net.Dial("tcp", target)
		if err != nil {
			_ = client.Close()
			continue
		}
		if !p.keep(client, server) {
			return
		}
		l := &link{p: p, client: client, server: server}
		p.wg.Go(func() { defer l.end(); l.requests() })
		p.wg.Go(func() { defer l.end(); l.replies() })
	}
}

// keep notes connections that Drop has to end. It ends them at once if the proxy is closed.
func (p *Proxy) keep(conns ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		if p.conns == nil {
			_ = c.Close()
			continue
		}
		p.conns[c] = true
	}
	return p.conns != nil
}

// hit decides about a request.
func (p *Proxy) hit(request []byte) (s Strike, ok bool) {
	if !script(request) {
		return s, false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.strike == nil {
		return s, false
	}
	if p.seen++; p.seen%p.strike.Every != 0 || p.strike.Most > 0 && p.struck == p.strike.Most {
		return s, false
	}
	p.struck++
	return *p.strike, true
}

// script reports whether a request is one that Redis may run late or twice: the name of its command begins with EVAL.
func script(request []byte) bool {
	_, rest, ok := bytes.Cut(request, []byte("\r\n"))
	if !ok {
		return false
	}
	_, name, ok := bytes.Cut(rest, []byte("\r\n"))
	return ok && len(name) > 4 && bytes.EqualFold(name[:4], []byte("eval"))
}

// deliver brings a request to the server after d, on a connection of its own.
func (p *Proxy) deliver(request []byte, d time.Duration) {
	p.mu.Lock()
	p.late++
	p.mu.Unlock()
	time.AfterFunc(d, func() {
		p.mu.Lock()
		target := p.target
		p.late--
		p.mu.Unlock()
		conn, err := net.DialTimeout("tcp", target, time.Second)
		if err != nil {
			return // then it is lost
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(time.Second))
		if _, err := conn.Write(request); err == nil {
			_, _ = bufio.NewReader(conn).ReadByte() // wait for the answer, so that the server has run it
		}
	})
}
