package adaptertest

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/lock"
)

// Random plays random handlers, each without a loss, which must look as without a guard, and with one at a random step,
// which must never look like a success and never be repeated. A failure names its seed; LATCHKEY_SEED plays it again.
func Random(t *testing.T, guarded, bare Mount) {
	seeds := 40
	first := rand.Uint64() >> 1
	if text := os.Getenv("LATCHKEY_SEED"); text != "" {
		var err error
		if first, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
		seeds = 1
	}
	for _, p := range Protocols {
		before := runtime.NumGoroutine()
		t.Run(p.Name+"/error that goes on", func(t *testing.T) { lostPlan(t, guarded, p, errorGoesOn) })
		t.Run(p.Name+"/trailer of a copy", func(t *testing.T) { keptPlan(t, guarded, bare, p, copyWithTrailer) })
		for seed := first; seed < first+uint64(seeds); seed++ {
			t.Run(fmt.Sprintf("%s/%d", p.Name, seed), func(t *testing.T) {
				plan := newPlan(seed, p.Name != "HTTP2")
				if t.Run("kept", func(t *testing.T) { keptPlan(t, guarded, bare, p, plan) }); t.Failed() {
					t.Log(plan)
				}
				if t.Run("lost", func(t *testing.T) { lostPlan(t, guarded, p, plan) }); t.Failed() {
					t.Log(plan)
				}
			})
		}
		waitForGoroutines(t, before) // of servers and clients
	}
}

// plan is a request and what its handler does.
type plan struct {
	method string
	upload int
	length bool // declared
	late   bool // found lost by the release
	loseAt int  // before that step
	steps  []step
}

func (p plan) String() string {
	names := make([]string, len(p.steps))
	for i, s := range p.steps {
		names[i] = fmt.Sprintf("%s(%d)", s.name, s.n)
	}
	return fmt.Sprintf("%s, %d bytes up, length declared: %v, lost at %d (late: %v): %s",
		p.method, p.upload, p.length, p.loseAt, p.late, strings.Join(names, " "))
}

// step is one thing that a handler does. Its error is only that of a write.
type step struct {
	name string
	n    int
	do   func(p *play, n int) (wrote int, err error)
}

// play is one run of a plan.
type play struct {
	w    http.ResponseWriter
	r    *http.Request
	conn io.WriteCloser // hijacked
	log  []string       // results of the steps
}

var steps = []step{
	{"write", 7000, func(p *play, n int) (int, error) { return p.w.Write(make([]byte, n)) }},
	{"write", 300, func(p *play, n int) (int, error) { return p.w.Write(make([]byte, n)) }},
	{"string", 3000, func(p *play, n int) (int, error) { return io.WriteString(p.w, strings.Repeat("s", n)) }},
	{"copy", 20_000, func(p *play, n int) (int, error) {
		m, err := io.Copy(p.w, io.LimitReader(strings.NewReader(strings.Repeat("c", n)), int64(n)))
		return int(m), err
	}},
	{"flush", 0, func(p *play, _ int) (int, error) { flush(p.w); return 0, nil }},
	{"read", 50_000, func(p *play, n int) (int, error) {
		_, _ = io.CopyN(io.Discard, p.r.Body, int64(n))
		return 0, nil
	}},
	{"header", 0, func(p *play, _ int) (int, error) { p.w.Header().Set("Late", "1"); return 0, nil }},
	{"trailer", 0, func(p *play, _ int) (int, error) { p.w.Header().Set("Sum", "1"); return 0, nil }},
	{"free trailer", 0, func(p *play, _ int) (int, error) { p.w.Header().Set(http.TrailerPrefix+"Free", "1"); return 0, nil }},
	{"deadlines", 0, func(p *play, _ int) (int, error) {
		c := http.NewResponseController(p.w)
		_ = c.SetReadDeadline(time.Now().Add(time.Minute))
		_ = c.SetWriteDeadline(time.Now().Add(time.Minute))
		return 0, nil
	}},
	{"hints", 0, func(p *play, _ int) (int, error) { p.w.WriteHeader(http.StatusEarlyHints); return 0, nil }},
	{"panic", 0, func(*play, int) (int, error) { panic(http.ErrAbortHandler) }},
}

var (
	status = step{"status", 0, func(p *play, n int) (int, error) { p.w.WriteHeader(n); return 0, nil }}
	hijack = step{"hijack", 0, func(p *play, _ int) (_ int, err error) {
		p.conn, _, err = p.w.(http.Hijacker).Hijack()
		return 0, err
	}}
	raw = step{"raw", 0, func(p *play, n int) (int, error) {
		if p.conn == nil {
			return 0, nil
		}
		if n == 0 {
			return io.WriteString(p.conn, "HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nhalf")
		}
		return io.WriteString(p.conn, "rest")
	}}
)

// errorGoesOn loses its lock when the server has promised to go on with the connection, and the client has sent all.
var errorGoesOn = plan{method: "POST", upload: 54_386, length: true, loseAt: 2, steps: []step{
	{status.name, http.StatusConflict, status.do},
	{"flush", 0, func(p *play, _ int) (int, error) { flush(p.w); return 0, nil }},
	{"write", 9291, func(p *play, n int) (int, error) { return p.w.Write(make([]byte, n)) }},
}}

// copyWithTrailer is a copy that a bare server begins to send at once, and so has trailers with.
var copyWithTrailer = plan{method: "GET", steps: []step{named("copy", 1000), named("free trailer", 0)}}

// named is a step of this name.
func named(name string, n int) step {
	s := steps[slices.IndexFunc(steps, func(s step) bool { return s.name == name })]
	s.n = n
	return s
}

func newPlan(seed uint64, h1 bool) plan {
	r := rand.New(rand.NewPCG(seed, 0))
	p := plan{method: []string{"GET", "HEAD", "POST", "POST"}[r.IntN(4)], late: r.IntN(4) == 0, length: r.IntN(3) == 0}
	if p.method == "POST" {
		p.upload = r.IntN(100_000)
	}
	if r.IntN(2) == 0 {
		s := status
		s.n = []int{200, 201, 204, 303, 304, 409, 503}[r.IntN(7)]
		p.steps = append(p.steps, s)
	}
	if h1 && p.method != "HEAD" && r.IntN(5) == 0 {
		rest := raw
		rest.n = 1
		p.steps = []step{hijack, raw, rest}
		p.late, p.length, p.upload = false, false, 0
	} else {
		for range r.IntN(7) {
			s := steps[r.IntN(len(steps))]
			if s.n > 0 {
				s.n = 1 + r.IntN(s.n)
			}
			if s.name == "read" { // what can be read after a write, the server decides
				p.steps = append([]step{s}, p.steps...)
			} else {
				p.steps = append(p.steps, s)
			}
		}
	}
	p.loseAt = r.IntN(len(p.steps) + 1)
	return p
}

// total is what the handler writes.
func (p plan) total() (n int) {
	for _, s := range p.steps {
		if s.name == "write" || s.name == "string" || s.name == "copy" {
			n += s.n
		}
	}
	return n
}

// run is the handler. lose is called before the step that the plan names.
func (p plan) run(t *testing.T, w http.ResponseWriter, r *http.Request, lose func()) (log []string) {
	run := &play{w: w, r: r}
	defer func() {
		if run.conn != nil {
			run.conn.Close()
		}
	}()
	w.Header().Set("Content-Type", "text/plain")
	if p.length {
		w.Header().Set("Content-Length", strconv.Itoa(p.total()))
	} else if slices.ContainsFunc(p.steps, func(s step) bool { return s.name == "trailer" }) {
		w.Header().Set("Trailer", "Sum")
	}
	lost := false
	for i, s := range p.steps {
		if i == p.loseAt {
			lost = lose != nil
			call(lose)
		}
		n, err := s.do(run, s.n)
		if lost && !p.late && n > 0 && s.name != "raw" && !p.failed() {
			t.Errorf("step %d, %s, wrote %d bytes after the loss", i, s.name, n)
		}
		if lost && !p.late && err != nil && !errors.Is(err, lock.ErrLost) && !errors.Is(err, http.ErrBodyNotAllowed) && !p.failed() {
			t.Errorf("step %d, %s: %v", i, s.name, err)
		}
		run.log = append(run.log, fmt.Sprintf("%s: %d, %v", s.name, n, err))
	}
	if p.loseAt == len(p.steps) {
		call(lose)
	}
	return run.log
}

func call(f func()) {
	if f != nil {
		f()
	}
}

// failed reports whether the handler's own status is an error.
func (p plan) failed() bool {
	return slices.ContainsFunc(p.steps, func(s step) bool { return s.name == "status" && s.n >= 400 })
}

// complete reports whether a hijacker has written all of its response before the loss.
func (p plan) complete() bool {
	return len(p.steps) > 0 && p.steps[0].name == "hijack" && p.loseAt >= len(p.steps)
}

// send makes one request over a connection that was used before.
func (p plan) send(t *testing.T, s *httptest.Server) (string, error) {
	t.Helper()
	if got, err := exchange(t, s, "GET", "0"); err != nil || got.status != 200 {
		t.Errorf("another request: %d, %v", got.status, err)
	}
	r, err := http.NewRequest(p.method, s.URL+"/orders/42", strings.NewReader(strings.Repeat("u", p.upload)))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Idempotency-Key", "1")
	client := *s.Client()
	client.Timeout = 20 * time.Second
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	res, err := client.Do(r)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%d %q %v %v %q", res.StatusCode, res.Header["Late"], res.Header["Content-Type"], res.Trailer, data), nil
}

// keptPlan compares a guarded handler that keeps its lock with a bare one.
func keptPlan(t *testing.T, guarded, bare Mount, p Protocol, plan plan) {
	got, want := plan.play(t, guarded, p), plan.play(t, bare, p)
	if plan.panics() && got.failed { // which a bare handler may do when all of its response is on the way
		return
	}
	if strings.Contains(want.answer, " map[] ") { // a bare server has no trailers with a response that it knows all of
		got.answer = strings.Replace(got.answer, " map[Free:[1]] ", " map[] ", 1)
	}
	if got.answer != want.answer || got.failed != want.failed || got.runs != want.runs {
		t.Errorf("got  %.300s (failed: %v, runs: %d)\nwant %.300s (failed: %v, runs: %d)",
			got.answer, got.failed, got.runs, want.answer, want.failed, want.runs)
	}
	if plan.method != "HEAD" && !slices.Equal(got.log, want.log) { // a HEAD of HTTP/2 can be over before its handler
		t.Errorf("the handler got  %q\nwithout a guard %q", got.log, want.log)
	}
}

// outcome is what client and handler have seen.
type outcome struct {
	answer string
	failed bool
	runs   int64
	log    []string
}

func (p plan) play(t *testing.T, mount Mount, protocol Protocol) outcome {
	var runs atomic.Int64
	logs := make(chan []string, 100)
	s, _ := lossServer(t, mount, protocol, func(w http.ResponseWriter, r *http.Request, _ *LossLocker) {
		runs.Add(1)
		var log []string
		defer func() { logs <- log }()
		log = p.run(t, w, r, nil)
	})
	defer s.Close()
	answer, err := p.send(t, s)
	return outcome{answer, err != nil, runs.Load(), <-logs}
}

// lostPlan loses the lock of a handler.
func lostPlan(t *testing.T, guarded Mount, p Protocol, plan plan) {
	var runs atomic.Int64
	s, l := lossServer(t, guarded, p, func(w http.ResponseWriter, r *http.Request, l *LossLocker) {
		runs.Add(1)
		plan.run(t, w, r, l.Lose)
	})
	defer s.Close()
	l.Late.Store(plan.late)
	got, err := plan.send(t, s)
	if err == nil && got < "4" && !plan.complete() {
		t.Errorf("a complete success: %.300s", got)
	}
	if n := runs.Load(); n > 1 && !plan.panicsFirst() {
		t.Errorf("the handler ran %d times", n)
	}
	if got, err := exchange(t, s, "GET", "0"); err != nil || got.status != 200 {
		t.Errorf("the next request: %d, %v", got.status, err)
	}
	s.Close()
}

func (p plan) panics() bool {
	return slices.ContainsFunc(p.steps, func(s step) bool { return s.name == "panic" })
}

// panicsFirst reports whether the handler panics before the lock is lost, or before that is found out.
func (p plan) panicsFirst() bool {
	i := slices.IndexFunc(p.steps, func(s step) bool { return s.name == "panic" })
	return i >= 0 && (i < p.loseAt || p.late)
}
