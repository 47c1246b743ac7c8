// Package wire is a proxy that understands the protocol of Redis, and loses, delays or repeats single requests and replies.
package wire

import (
	"bufio"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
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

// Proxy stands between clients and a server. Late requests are lost when it is closed.
type Proxy struct {
	*redistest.Relay

	mu     sync.Mutex
	strike *Strike
	seen   int
	struck int
	late   int // copies that are under way
}

// Listen returns a proxy in front of the server at target, on a free port.
func Listen(target string) (p *Proxy, err error) {
	p = &Proxy{}
	p.Relay, err = redistest.Listen(target, func(client, server net.Conn) (up, down func()) {
		l := &link{p: p, client: client, server: server}
		return l.requests, l.replies
	})
	return p, err
}

// Begin strikes requests until End.
func (p *Proxy) Begin(s Strike) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.strike, p.seen, p.struck = &s, 0, 0
}

// End stops that, and returns how many requests were struck. Late ones are still to come; see Pending.
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

// hit decides about a request.
func (p *Proxy) hit(words []string) (s Strike, ok bool) {
	if !script(words[0]) {
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

// script reports whether a command is one that Redis may run late or twice: its name begins with EVAL.
func script(name string) bool { return len(name) >= 4 && strings.EqualFold(name[:4], "eval") }

// deliver brings a request to the server after d, on a connection of its own.
func (p *Proxy) deliver(request []byte, d time.Duration) {
	p.mu.Lock()
	p.late++
	p.mu.Unlock()
	time.AfterFunc(d, func() {
		p.mu.Lock()
		p.late--
		p.mu.Unlock()
		conn, err := net.DialTimeout("tcp", p.Target(), time.Second)
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
