package redistest

import (
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"
)

// lateTimeout bounds the waits for something that a test expects to come.
const lateTimeout = 10 * time.Second

// Late is a request, or the answer to one, that a proxy keeps back until Deliver.
type Late struct {
	p      *Proxy
	part   []byte
	skip   int // how many requests with this part come first; guarded by the proxy's mutex
	silent bool
	reply  bool

	taken     chan struct{} // closed when bytes is set
	bytes     []byte
	delivered chan struct{}
	once      sync.Once
}

// KeepBack takes a request out of the traffic: the next one that contains part, after so many others that do. Its
// connection is closed. Deliver sends it to the server on another connection.
func (p *Proxy) KeepBack(part string, skip int) *Late {
	return p.keep(&Late{part: []byte(part), skip: skip})
}

// KeepBackSilently is KeepBack, but for that the connection stays open, and nothing comes any more.
func (p *Proxy) KeepBackSilently(part string, skip int) *Late {
	return p.keep(&Late{part: []byte(part), skip: skip, silent: true})
}

// KeepBackReply lets such a request reach the server and takes the answer out of the traffic. Deliver passes it on.
func (p *Proxy) KeepBackReply(part string, skip int) *Late {
	return p.keep(&Late{part: []byte(part), skip: skip, reply: true})
}

func (p *Proxy) keep(l *Late) *Late {
	l.p, l.taken, l.delivered = p, make(chan struct{}), make(chan struct{})
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lates = append(p.lates, l)
	return l
}

// keepAgain undoes a match.
func (p *Proxy) keepAgain(l *Late) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lates = append([]*Late{l}, p.lates...)
}

func (l *Late) take(b []byte) {
	l.bytes = b
	close(l.taken)
}

// Taken reports whether there was such a request, or the answer to one.
func (l *Late) Taken() bool {
	select {
	case <-l.taken:
		return true
	default:
		return false
	}
}

// Await waits until there was such a request, or the answer to one. It fails the test if none comes.
func (l *Late) Await(tb testing.TB) {
	tb.Helper()
	select {
	case <-l.taken:
	case <-time.After(lateTimeout):
		tb.Fatalf("redistest: no request with %q within %v", l.part, lateTimeout)
	}
}

// Deliver brings what was kept back to where it belongs, once; a request also gets its answer. It fails the test if
// nothing was kept back, or if it is a script that the server does not know.
func (l *Late) Deliver(tb testing.TB) {
	tb.Helper()
	if err := l.TryDeliver(); err != nil {
		tb.Fatalf("redistest: %v", err)
	}
}

// TryDeliver is Deliver for those who are not the test, or do not know whether anything was kept back.
func (l *Late) TryDeliver() (err error) {
	if !l.Taken() {
		return fmt.Errorf("there was no request with %q", l.part)
	}
	l.once.Do(func() {
		close(l.delivered)
		if !l.reply {
			err = l.send()
		}
	})
	return err
}

func (l *Late) send() error {
	conn, err := net.DialTimeout("tcp", l.p.Target(), lateTimeout)
	if err != nil {
		return err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(lateTimeout))
	answer := make([]byte, 64<<10)
	_, err = conn.Write(l.bytes)
	n := 0
	if err == nil {
		n, err = conn.Read(answer)
	}
	if err != nil {
		return fmt.Errorf("late request: %w", err)
	}
	if got := string(answer[:n]); strings.HasPrefix(got, "-NOSCRIPT") {
		return fmt.Errorf("late request: %q", got)
	}
	return nil
}
