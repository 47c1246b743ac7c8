package neighbours

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/guard/guardtest"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/memlock"
	"github.com/latchkey-go/latchkey/middleware"
	"github.com/latchkey-go/latchkey/middleware/ginguard"
)

// program is a neighbourhood: new builds a server's handler around a work, with the guard of e in it.
type program struct {
	name string
	new  func(e *env) http.Handler

	keeps   bool // all of a response until its end, also without a guard
	returns bool // a handler's error goes on to the framework, so that a guard can know it after a part was written
	late    bool // a timeout stands outside of the guard
	http1   bool // the program is the same over HTTP/2
	proxies bool // the guard sees a proxy in place of the work
}

// key is that of all guards: it needs a path value and a header.
const (
	template = `order:#{path.id}:#{header.Tenant}`
	theKey   = "order:7:acme"
)

// env is what a program is built of.
type env struct {
	t     *testing.T
	work  work
	call  *call
	guard *guard.Guard      // nil for the program without one
	inner []gin.HandlerFunc // between the guard and the work
	close []func()          // after the server

	inside sync.WaitGroup // the server, the guard, the work: neither HTTP/2's server nor a timeout waits for what is in it
}

// std is the guard as net/http's middleware, or what stands in its place.
func (e *env) std(opts ...middleware.Option) func(http.Handler) http.Handler {
	if e.guard == nil {
		return func(next http.Handler) http.Handler { return next }
	}
	wrap := guard.Must(middleware.New(e.guard, opts...))
	return func(next http.Handler) http.Handler { return e.counted(wrap(next)) }
}

// counted is h, whose end e waits for.
func (e *env) counted(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		e.inside.Add(1)
		defer e.inside.Done()
		h.ServeHTTP(w, r)
	})
}

// gin is the guard as a handler of gin, or what stands in its place.
func (e *env) gin() gin.HandlerFunc {
	if e.guard == nil {
		return func(*gin.Context) {}
	}
	return guard.Must(ginguard.New(e.guard))
}

// run does the work. json may be nil.
func (e *env) run(w http.ResponseWriter, r *http.Request, json func(int, any) error) error {
	e.inside.Add(1)
	defer e.inside.Done()
	if e.call.runs++; e.call.runs == 1 {
		close(e.call.begun)
	}
	return e.work.do(&exchange{w, r, json, e.call})
}

// ServeHTTP is the work as a handler of net/http.
func (e *env) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := e.run(w, r, func(status int, v any) error { return writeJSON(w, status, v) }); err != nil {
		status, text := statusOf(err)
		http.Error(w, text, status)
	}
}

// mux is net/http's, with the guarded work.
func (e *env) mux() *http.ServeMux {
	mux := http.NewServeMux()
	mux.Handle("/orders/{id}", e.std()(e))
	return mux
}

// timeout is one that is over only for works that wait for it.
func (e *env) timeout() time.Duration {
	if e.work.late {
		return 20 * time.Millisecond
	}
	return time.Hour
}

// protocol is one way to talk to a server.
type protocol string

const (
	http1 protocol = "HTTP/1"
	http2 protocol = "HTTP/2"
)

func (p protocol) set() *http.Protocols {
	all := new(http.Protocols)
	all.SetHTTP1(p == http1)
	all.SetUnencryptedHTTP2(p == http2)
	return all
}

// serve starts a server, which e closes in the end.
func (e *env) serve(p protocol, h http.Handler, logs io.Writer) (url string) {
	s := httptest.NewUnstartedServer(e.counted(h))
	s.Config.Protocols = p.set()
	s.Config.ErrorLog = log.New(logs, "", 0)
	s.Start()
	e.close = append(e.close, s.Close)
	return s.URL
}

// state is how the guard fares.
type state struct {
	name     string
	fault    []guardtest.Fault
	tenant   string
	midway   bool // the work loses the lock
	status   int  // of the refusal; 0 for a call that goes through
	problem  string
	outcome  string
	retry    bool
	headless bool
}

var states = []state{
	{name: "free", tenant: "acme"},
	{name: "lost at the release", tenant: "acme", fault: faults(guardtest.LostUnnoticed()), outcome: "lost"},
	{name: "lost midway", tenant: "acme", midway: true, outcome: "lost"},
	{name: "busy", tenant: "acme", fault: faults(guardtest.Busy()), status: 409, problem: "ErrBusy", outcome: "busy", retry: true},
	{name: "outage", tenant: "acme", fault: faults(guardtest.Outage(errors.New("10.9.8.7: no route"))), status: 503, problem: "ErrOutage", outcome: "outage", retry: true},
	{name: "bad key", status: 400, problem: "ErrKey", outcome: "key"},
}

func faults(f ...guardtest.Fault) []guardtest.Fault { return f }

// answer is what a client has seen.
type answer struct {
	err      string // "", "broken", "no answer", "gave up", "undecodable", or another one
	status   int
	header   []string
	trailer  []string
	body     string
	raw      int      // bytes of the body, as they came
	log      []string // of the server
	problem  middleware.Problem
	envelope http.Header
}

func (a answer) String() string {
	return fmt.Sprintf("%s %d\n\t\t%q\n\t\t%.200q trailers %q log %q", cmp.Or(a.err, "complete"), a.status, a.header, a.body, a.trailer, a.log)
}

// account is what is known of the guard after a play.
type account struct {
	outcomes []string
	held     bool // the key, still
	runs     int
}

// play is one call.
type play struct {
	program  program
	work     work
	protocol protocol
	gzip     bool   // the client wants it
	state    *state // nil without a guard
	key      string // a template; the usual one if empty
}

func (p play) run(t *testing.T) (answer, account) {
	t.Helper()
	e := &env{t: t, work: p.work, call: &call{begun: make(chan struct{}), got: make(chan struct{})}}
	locker := memlock.New()
	var events guardtest.Events
	tenant := "acme"
	if s := p.state; s != nil {
		rec := guardtest.Record(locker, s.fault...)
		e.guard = guard.Must(guard.New(rec, guard.Name("order.settle"), guard.Key(cmp.Or(p.key, template)), guard.Wait(time.Millisecond),
			guard.HoldAtLeast(time.Hour), guard.Observe(events.Observe)))
		tenant = s.tenant
		if s.midway {
			e.call.losing = func() { rec.Lose(theKey) }
		}
	}
	if p.program.keeps {
		e.call.got = nil
	}
	logs := new(syncBuffer)
	url := e.serve(p.protocol, p.program.new(e), logs)
	a := p.ask(t, url, tenant, e.call)
	for _, closing := range slices.Backward(e.close) { // waits for handlers
		closing()
	}
	e.inside.Wait()
	a.log = logs.lines()
	held := locker.Peek(context.Background(), lock.Request{Key: theKey}) != nil
	return a, account{events.Outcomes(""), held, e.call.runs}
}

// ask sends the request, and reads all of the response.
func (p play) ask(t *testing.T, url, tenant string, c *call) answer {
	t.Helper()
	transport := &http.Transport{DisableCompression: true, Protocols: p.protocol.set()}
	defer transport.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	method := cmp.Or(p.work.method, http.MethodPost)
	var body io.Reader
	if method == http.MethodPost {
		body = strings.NewReader(`{"id":"7","note":"as a gift"}`)
		if p.work.body != nil {
			body = bytes.NewReader(p.work.body)
		}
	}
	r, err := http.NewRequestWithContext(ctx, method, url+"/orders/7?page=2", body)
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"Tenant": tenant, "Content-Type": "application/json", "Origin": "http://shop.example"} {
		if value != "" {
			r.Header.Set(name, value)
		}
	}
	for name, value := range p.work.header {
		r.Header.Set(name, value)
	}
	if p.work.chunked {
		r.ContentLength = -1
	}
	if p.gzip {
		r.Header.Set("Accept-Encoding", "gzip")
	}
	if p.work.hangs && (p.state == nil || !p.state.midway && p.state.status == 0) {
		go func() {
			select {
			case <-c.begun:
			case <-ctx.Done():
			}
			cancel()
		}()
	}
	if c.got != nil {
		defer close(c.got)
	}
	res, err := transport.RoundTrip(r)
	if err != nil {
		return answer{err: classify(ctx, err, "no answer")}
	}
	defer res.Body.Close()
	return read(ctx, res, func() {
		if c.got != nil {
			select {
			case c.got <- struct{}{}:
			case <-ctx.Done():
			}
		}
	}, p.work.events)
}

// read reads a response, and tells of each event.
func read(ctx context.Context, res *http.Response, event func(), events int) answer {
	a := answer{status: res.StatusCode, envelope: res.Header}
	raw := &counter{Reader: res.Body}
	var body io.Reader = bufio.NewReader(raw)
	if res.Header.Get("Content-Encoding") == "gzip" && res.Request.Method != http.MethodHead && res.StatusCode != 204 && res.StatusCode != 304 {
		z, err := gzip.NewReader(body)
		if err == io.EOF { // which net/http's client takes for an empty body
			a.header, a.trailer = headers(res), flat(res.Trailer)
			return a
		}
		if err != nil {
			a.err = classify(ctx, err, "broken")
			a.body, a.header = "no gzip: "+raw.head.String(), headers(res)
			return a
		}
		body = z
	}
	lines := bufio.NewReader(body)
	var text strings.Builder
	for {
		line, err := lines.ReadString('\n')
		text.WriteString(line)
		if err != nil {
			if err != io.EOF {
				a.err = classify(ctx, err, "broken")
			}
			break
		}
		if strings.HasPrefix(line, "data: event") && events > 0 {
			events--
			event()
		}
	}
	if _, err := io.Copy(io.Discard, raw); err != nil && a.err == "" { // what follows the end of the gzip
		a.err = classify(ctx, err, "broken")
	}
	a.body, a.raw, a.header, a.trailer = text.String(), raw.n, headers(res), flat(res.Trailer)
	return a
}

// classify says in a word how an exchange ended.
func classify(ctx context.Context, err error, word string) string {
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return "no end in sight"
	case errors.Is(err, context.Canceled):
		return "gave up"
	case errors.Is(err, gzip.ErrHeader), errors.Is(err, gzip.ErrChecksum):
		return "undecodable"
	}
	return word
}

// headers are those of the response, but for the date, and what net/http makes of some.
func headers(res *http.Response) []string {
	h := maps.Clone(res.Header)
	delete(h, "Date")
	all := flat(h)
	if len(res.TransferEncoding) > 0 {
		all = append(all, "Transfer-Encoding: "+strings.Join(res.TransferEncoding, ","))
	}
	if res.Close {
		all = append(all, "(the connection closes)")
	}
	return all
}

func flat(h http.Header) (all []string) {
	for _, name := range slices.Sorted(maps.Keys(h)) {
		text := strings.Join(h[name], " | ")
		if name == "Set-Cookie" { // which is another one each time
			text, _, _ = strings.Cut(text, "=")
		}
		all = append(all, name+": "+text)
	}
	return all
}

// counter counts what is read, and keeps the beginning.
type counter struct {
	io.Reader
	n    int
	head bytes.Buffer
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	if c.n += n; c.head.Len() < 200 {
		c.head.Write(p[:n])
	}
	return n, err
}

// syncBuffer is a log that several may write.
type syncBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

// lines are the beginnings of what was logged, without addresses, stacks and ports.
func (b *syncBuffer) lines() (all []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for line := range strings.Lines(b.buf.String()) {
		if strings.HasPrefix(line, "http: ") {
			text, _, _ := strings.Cut(strings.TrimSpace(line), " from ")
			text, _, _ = strings.Cut(text, " serving ")
			all = append(all, text)
		}
	}
	return all
}
