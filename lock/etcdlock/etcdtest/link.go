package etcdtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"sync"
)

// link is the way of one member to the others: a proxy for HTTP, which is what members talk with each other. Their addresses are names
// that only these proxies know.
type link struct {
	c      *Cluster
	host   string // of the member, for the others
	server *http.Server
	socket net.Listener

	mu  sync.Mutex
	cut bool
	// end ends what is under way through this link.
	ctx context.Context
	end context.CancelFunc
}

func newLink(c *Cluster, i int) (*link, error) {
	socket, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	l := &link{c: c, host: fmt.Sprintf("member%d.etcdtest", i), socket: socket}
	l.ctx, l.end = context.WithCancel(context.Background())
	l.server = &http.Server{Handler: &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.Out.URL.Scheme = "http" },
		Transport:     l,
		FlushInterval: -1,
		ErrorLog:      log.New(io.Discard, "", 0), // streams that are cut
		ErrorHandler:  func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}}
	go func() { _ = l.server.Serve(socket) }() // until close
	return l, nil
}

func (l *link) addr() string { return l.socket.Addr().String() }

func (l *link) close() {
	l.set(true)
	_ = l.server.Close()
}

// set cuts the link, and ends what goes over it, or lets it be used again.
func (l *link) set(cut bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = cut
	if cut {
		l.end()
		return
	}
	l.ctx, l.end = context.WithCancel(context.Background())
}

// life returns the context of what goes over the link, or nil if it is cut.
func (l *link) life() context.Context {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cut {
		return nil
	}
	return l.ctx
}

var errCut = errors.New("etcdtest: cut")

// RoundTrip sends a request to the member that it names. It ends when the link of one of the two is cut.
func (l *link) RoundTrip(r *http.Request) (*http.Response, error) {
	m := l.c.member(r.URL.Hostname())
	if m == nil {
		return nil, fmt.Errorf("etcdtest: no member %s", r.URL.Host)
	}
	from, to := l.life(), m.link.life()
	if from == nil || to == nil {
		return nil, errCut
	}
	ctx, cancel := context.WithCancel(r.Context()) // ends with the request, at the latest
	context.AfterFunc(from, cancel)
	context.AfterFunc(to, cancel)
	r = r.WithContext(ctx)
	r.URL.Host = m.peer
	return http.DefaultTransport.RoundTrip(r)
}
