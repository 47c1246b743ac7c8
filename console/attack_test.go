package console

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/guard"
)

// What a visitor who means no good can send, or not read.

// Whatever is pasted, there is an answer.
func TestPastedNonsense(t *testing.T) {
	h, err := newHandler(newFake(), guard.Must(guard.NewRegistry()), []Option{quiet})
	if err != nil {
		t.Fatal(err)
	}
	s := serveHandler(t, h)
	for _, what := range []string{"\t\nhttps://x", "\u00a0\r\nGET /x", "\v\nfoo", "GET \t", "POST", ":", "\"\\x", "\x00", strings.Repeat("a:b\n", 10_000), "GET /\n" + strings.Repeat("a.b: {}\n", 10_000)} {
		for _, as := range []string{"", "key", "id", "request", "odd"} {
			switch a := paste(t, s, "what", what, "as", as); a.status {
			case http.StatusOK, http.StatusSeeOther, http.StatusUnprocessableEntity:
			default:
				t.Errorf("%.20q as %q: %d", what, as, a.status)
			}
		}
	}
}

func FuzzPasted(f *testing.F) {
	f.Add("POST /orders/7\npath.id: 7\nclaims: {\"a\":1}\n\n{}")
	f.Add("\t\nfoo")
	f.Fuzz(func(t *testing.T, text string) {
		if p, err := readRequest(text); err == nil {
			p.facts([]string{"method", "host", "path", "query", "header", "cookie", "form", "body", "req"})
		}
		if text != "" && pastedKey(text) == "" {
			t.Errorf("%q is no key", text)
		}
	})
}

// What a link says comes back on the page in several places, and again with each update of a live view.
func TestLongLinks(t *testing.T) {
	s := serve(t, newFake(heldLock("order:42", clientA+":1")), ShowKeys(Whole), AllowFree(allow))
	long := strings.Repeat("<", 200_000)
	for _, page := range []string{"?q=", "?sort=", "?type=", "events?of=list&q="} {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+"/"+page+long, nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		n, _ := io.CopyN(io.Discard, res.Body, 400_000) // a stream does not end, but is short
		cancel()
		_ = res.Body.Close()
		if n > 300_000 {
			t.Errorf("%s: at least %d bytes for one lock", page, n)
		}
	}
	for _, page := range []string{"lock?key=", "free?key=", "events?of=lock&key="} {
		get(t, s.URL+"/"+page+long).wants(t, page, http.StatusBadRequest, "too long")
	}
	get(t, s.URL+"/?q="+strings.Repeat("order:42", 1000)).wants(t, "a long text", http.StatusOK, "order:42")
}

// HEAD has the status of GET and nothing else, and opens no live view.
func TestHead(t *testing.T) {
	h, err := newHandler(newFake(heldLock("a", clientA+":1")), nil, []Option{quiet, AllowFree(allow)})
	if err != nil {
		t.Fatal(err)
	}
	s := serveHandler(t, h)
	for page, want := range map[string]int{"": 200, "lock?key=a": 200, "lock": 400, "free?key=a": 200, "find": 200, "guards": 200, "switch?guard=a": 403, "events?of=list": 200, "events?of=lock": 400, "style.css": 200, "nowhere": 404} {
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodHead, s+"/"+page, nil)
		if a := send(t, r); a.status != want || a.body != "" {
			t.Errorf("HEAD /%s: %d %q, want %d", page, a.status, a.body, want)
		}
	}
	if h.streams.n != 0 {
		t.Errorf("%d live views are open", h.streams.n)
	}
}

// Two people free one lock at a time. One of them has.
func TestTwoBrowsers(t *testing.T) {
	f := newFake(heldLock("a", clientA+":1"))
	s := serve(t, f, AllowFree(allow))
	one, other := confirmation(t, s, "a"), confirmation(t, s, "a")
	submit(t, s, s.URL, one).wants(t, "one", http.StatusSeeOther)
	submit(t, s, s.URL, other).wants(t, "the other", http.StatusConflict, "Nobody holds this lock any more")
	if _, _, freed := f.counts(); len(freed) != 1 {
		t.Errorf("freed %d times", len(freed))
	}
}

// A proxy strips a prefix, and passes the Host on or does not.
func TestBehindAProxy(t *testing.T) {
	f := newFake(heldLock("order:42", clientA+":1"))
	back := serve(t, f, ShowKeys(Whole), AllowFree(allow), Authorize(allow))
	to, err := url.Parse(back.URL)
	if err != nil {
		t.Fatal(err)
	}
	for _, keepsHost := range []bool{true, false} {
		f.put(heldLock("order:42", clientA+":1"))
		front := httptest.NewServer(http.StripPrefix("/ops/locks", &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(to)
			r.SetXForwarded()
			if keepsHost {
				r.Out.Host = r.In.Host
			}
		}}))
		defer front.Close()
		base := front.URL + "/ops/locks/"
		get(t, base).wants(t, "list", http.StatusOK, `href="lock?key=order%3A42"`)
		form := confirmation(t, &httptest.Server{URL: front.URL + "/ops/locks"}, "order:42")
		post := func(more string) answered {
			r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, base+"free", strings.NewReader(form.Encode()))
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			r.Header.Set("Origin", front.URL)
			if more != "" {
				r.Header.Set("Sec-Fetch-Site", more)
			}
			return send(t, r)
		}
		if !keepsHost { // a browser says itself what is the same origin, where it trusts the connection
			post("").wants(t, "another host", http.StatusForbidden, "another site")
			post("cross-site").wants(t, "another host", http.StatusForbidden)
		}
		a := post("same-origin")
		a.wants(t, "free", http.StatusSeeOther)
		at, _ := url.Parse(base)
		if next, err := at.Parse(a.header.Get("Location")); err != nil || !strings.HasPrefix(next.String(), base+"lock?") {
			t.Errorf("then to %v, %v", next, err)
		}
	}
}

// Two hundred people look at once. Those for whom there is no room have pages without a live view, and Redis is asked as for one.
func TestTwoHundredPages(t *testing.T) {
	t.Parallel()
	const pages, seconds = 200, 5
	servers, rdb := filled(t, 0, false)
	holders(t, rdb, 50)
	s := consoleOf(t, rdb)
	get(t, s.URL+"/").wants(t, "the first", http.StatusOK, "order:42") // loads the scripts
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: pages}}
	defer client.CloseIdleConnections()
	statuses := make(chan int, pages)
	ctx, leave := context.WithCancel(t.Context())
	var all sync.WaitGroup
	defer all.Wait()
	defer leave()
	begun := time.Now()
	total, counts := asked(t, servers, func() {
		for range pages {
			all.Go(func() {
				for _, page := range []string{"/", "/events?of=list"} {
					r, _ := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+page, nil)
					res, err := client.Do(r)
					if err != nil {
						t.Error(err)
						return
					}
					if page != "/" {
						statuses <- res.StatusCode
					}
					_, _ = io.Copy(io.Discard, res.Body)
					_ = res.Body.Close()
				}
			})
		}
		<-time.After(seconds * time.Second)
	})
	took := time.Since(begun).Seconds() // on a busy machine, more than it was asked for
	live := 0
	for range pages {
		switch status := <-statuses; status {
		case http.StatusOK:
			live++
		case http.StatusServiceUnavailable:
		default:
			t.Errorf("status %d", status)
		}
	}
	if live != mostStreams || float64(total) > 5*took || total == 0 {
		t.Errorf("%d live views, and %d questions in %.1f s, want %d and 5 a second at most: %s", live, total, took, mostStreams, counts)
	}
}

// A visitor who reads nothing any more holds a goroutine, the page and its place among the live views for as long as a write may take.
func TestStuckReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, err := newHandler(newFake(), nil, []Option{quiet, ShowKeys(Whole)})
		if err != nil {
			t.Fatal(err)
		}
		visitor, visited := net.Pipe()
		conns := make(pipeListener, 1)
		conns <- localConn{visited}
		s := &http.Server{Handler: h}
		var serving sync.WaitGroup
		serving.Go(func() { _ = s.Serve(conns) })
		open := func() int {
			h.streams.mu.Lock()
			defer h.streams.mu.Unlock()
			return h.streams.n
		}
		fmt.Fprint(visitor, "GET /events?of=list HTTP/1.1\r\nHost: localhost\r\n\r\n")
		if line, err := bufio.NewReader(visitor).ReadString('\n'); err != nil || !strings.Contains(line, "200") {
			t.Fatalf("%q, %v", line, err)
		}
		synctest.Wait() // the rest of the page is being written
		if n := open(); n != 1 {
			t.Errorf("%d live views", n)
		}
		time.Sleep(streamTimeout + time.Millisecond)
		synctest.Wait()
		if n := open(); n != 0 {
			t.Errorf("%d live views are open after %v", n, streamTimeout)
		}
		_ = visitor.Close()
		_ = s.Close()
		serving.Wait()
		time.Sleep(2 * linger) // until the feeds rest
	})
}

// localConn is one from this machine, which needs no sign-in.
type localConn struct{ net.Conn }

func (localConn) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }
func (localConn) LocalAddr() net.Addr  { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 2} }

// pipeListener accepts the connections that are put into it. Close ends it.
type pipeListener chan net.Conn

func (l pipeListener) Accept() (net.Conn, error) {
	if conn, ok := <-l; ok {
		return conn, nil
	}
	return nil, net.ErrClosed
}
func (l pipeListener) Close() error { close(l); return nil }
func (pipeListener) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }
