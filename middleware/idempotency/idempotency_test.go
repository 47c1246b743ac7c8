package idempotency_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/lock/memlock"
	"github.com/latchkey-go/latchkey/middleware"
	"github.com/latchkey-go/latchkey/middleware/idempotency"
)

// step is a request and what it is answered with.
type step struct {
	call
	status   int
	kind     string // of the problem; empty if it is none of this package's
	body     string // a part
	replayed bool
}

const mib = 1 << 20

// rows are requests in a row. What cuts a handler short is in faults_test.go.
var rows = []struct {
	name  string
	run   http.HandlerFunc // paid, without one
	opts  []idempotency.Option
	steps []step
	runs  int32
}{
	// What is repeated.
	{name: "the first one runs, the second one is told", steps: []step{
		{status: 201, body: `{"paid": {"cents": 100}}`},
		{status: 201, body: `{"paid": {"cents": 100}}`, replayed: true},
		{status: 201, replayed: true},
	}, runs: 1},
	{name: "PATCH", steps: []step{
		{call: call{method: "PATCH"}, status: 201},
		{call: call{method: "PATCH"}, status: 201, replayed: true},
	}, runs: 1},
	{name: "a body of no declared length", steps: []step{
		{call: call{stream: true}, status: 201, body: `{"paid": {"cents": 100}}`},
		{status: 201, replayed: true},
	}, runs: 1},
	{name: "silence is 200", run: func(http.ResponseWriter, *http.Request) {}, steps: []step{
		{status: 200},
		{status: 200, replayed: true},
	}, runs: 1},
	{name: "no content", run: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) }, steps: []step{
		{status: 204},
		{status: 204, replayed: true},
	}, runs: 1},
	{name: "a redirect", run: func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/receipts/1", 303) }, steps: []step{
		{status: 303},
		{status: 303, replayed: true},
	}, runs: 1},
	{name: "hints come first", run: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(103); w.WriteHeader(202) }, steps: []step{
		{status: 202},
		{status: 202, replayed: true},
	}, runs: 1},
	{name: "4xx is an answer", run: func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no such order", 404) }, steps: []step{
		{status: 404, body: "no such order"},
		{status: 404, body: "no such order", replayed: true},
	}, runs: 1},
	{name: "a stream", run: stream(3), steps: []step{
		{status: 200, body: "event 0\nevent 1\nevent 2\n"},
		{status: 200, body: "event 0\nevent 1\nevent 2\n", replayed: true},
	}, runs: 1},
	{name: "1 MiB", run: func(w http.ResponseWriter, _ *http.Request) { write(w, mib, mib) }, steps: []step{
		{status: 200},
		{status: 200, replayed: true},
	}, runs: 1},

	// What is not.
	{name: "5xx", run: func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "later", 502) }, steps: []step{
		{status: 502},
		{status: 502},
		{call: call{body: "other"}, status: 502},
	}, runs: 3},
	{name: "Retry-After", run: func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(429)
	}, steps: []step{{status: 429}, {status: 429}}, runs: 2},
	{name: "Retry-After with 202", run: func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(202)
	}, steps: []step{{status: 202}, {status: 202}}, runs: 2},
	{name: "a busy guard of the service layer", run: func(w http.ResponseWriter, r *http.Request) {
		middleware.Answer(w, r, &guard.Error{Guard: "stock", Err: guard.ErrBusy})
	}, steps: []step{{status: 409, body: "guard#ErrBusy"}, {status: 409, body: `"guard":"stock"`}}, runs: 2},
	{name: "an error that is answered further out", run: func(w http.ResponseWriter, _ *http.Request) {
		middleware.Failed(w, errors.New("no stock"))
	}, steps: []step{{status: 200}, {status: 200}}, runs: 2},
	{name: "an error with a status of success", run: func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"code": 17}`)
		middleware.Failed(w, errors.New("17"))
	}, steps: []step{{status: 200, body: "17"}, {status: 200, body: "17"}}, runs: 2},
	{name: "more than 1 MiB", run: func(w http.ResponseWriter, _ *http.Request) { write(w, mib+1, 1000) }, steps: []step{
		{status: 200},
		{status: 409, kind: "ErrTooLarge"},
	}, runs: 1},
	{name: "more than 1 MiB, and an error", run: func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(500)
		write(w, mib+1, 1000)
	}, steps: []step{{status: 500}, {status: 500}}, runs: 2},
	{name: "hijack", run: func(w http.ResponseWriter, _ *http.Request) {
		_, _, direct := w.(http.Hijacker).Hijack()
		_, _, controlled := http.NewResponseController(w).Hijack()
		fmt.Fprint(w, errors.Is(direct, http.ErrNotSupported), errors.Is(controlled, http.ErrNotSupported))
	}, steps: []step{{status: 200, body: "true true"}, {status: 200, body: "true true", replayed: true}}, runs: 1},

	// Keys.
	{name: "no key", steps: []step{{call: call{keys: noKey}, status: 400, kind: "ErrKey"}}},
	{name: "an empty key", opts: []idempotency.Option{idempotency.Optional()}, steps: []step{
		{call: call{keys: []string{""}}, status: 400, kind: "ErrKey"},
	}},
	{name: "two keys", steps: []step{{call: call{keys: []string{"a", "b"}}, status: 400, kind: "ErrKey"}}},
	{name: "malformed", steps: []step{
		{call: call{keys: []string{`"k-1`}}, status: 400, kind: "ErrKey"},
		{call: call{keys: []string{"schlüssel"}}, status: 400, kind: "ErrKey"},
		{call: call{keys: []string{strings.Repeat("k", 256)}}, status: 400, kind: "ErrKey"},
	}},
	{name: "optional", opts: []idempotency.Option{idempotency.Optional()}, steps: []step{
		{call: call{keys: noKey}, status: 201},
		{call: call{keys: noKey, caller: "nobody"}, status: 201},
		{status: 201},
		{status: 201, replayed: true},
	}, runs: 3},
	{name: "with and without quotes", steps: []step{
		{status: 201},
		{call: call{keys: []string{`"k-1"`}}, status: 201, replayed: true},
		{call: call{keys: []string{` "k-1" `}}, status: 201, replayed: true},
	}, runs: 1},
	{name: "another key is another request", steps: []step{
		{status: 201},
		{call: call{keys: []string{"k-2"}}, status: 201},
	}, runs: 2},
	{name: "other methods pass", steps: []step{
		{call: call{method: "PUT"}, status: 201},
		{call: call{method: "PUT"}, status: 201},
		{call: call{method: "DELETE", keys: noKey, caller: "nobody"}, status: 201},
	}, runs: 3},

	// Requests.
	{name: "other requests", steps: []step{
		{status: 201},
		{call: call{body: `{"cents": 101}`}, status: 422, kind: "ErrReused"},
		{call: call{path: "/orders/8?currency=eur"}, status: 422, kind: "ErrReused"},
		{call: call{path: "/orders/7?currency=usd"}, status: 422, kind: "ErrReused"},
		{call: call{method: "PATCH"}, status: 422, kind: "ErrReused"},
		{status: 201, replayed: true},
	}, runs: 1},
	{name: "a body over the limit", opts: []idempotency.Option{idempotency.BodyLimit(10)}, steps: []step{
		{status: 413, kind: "ErrBody"},
		{call: call{stream: true}, status: 413, kind: "ErrBody"},
		{call: call{body: "ten  bytes"}, status: 201},
	}, runs: 1},

	// Callers.
	{name: "callers share nothing", steps: []step{
		{status: 201},
		{call: call{caller: "bob", body: `{"cents": 7}`}, status: 201, body: `{"cents": 7}`},
		{status: 201, body: `{"cents": 100}`, replayed: true},
		{call: call{caller: "bob", body: `{"cents": 7}`}, status: 201, body: `{"cents": 7}`, replayed: true},
	}, runs: 2},
	{name: "caller and key are not one text", steps: []step{
		{call: call{caller: "ann", keys: []string{"bk"}}, status: 201},
		{call: call{caller: "annb", keys: []string{"k"}}, status: 201},
	}, runs: 2},
	{name: "no caller", steps: []step{
		{call: call{caller: "nobody"}, status: 401, kind: "ErrCaller"},
		{call: call{caller: "stranger"}, status: 401, kind: "ErrCaller"},
	}},
}

// stream answers in pieces that are flushed.
func stream(n int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := range n {
			fmt.Fprintf(w, "event %d\n", i)
			if i%2 == 0 {
				w.(http.Flusher).Flush()
			} else if err := http.NewResponseController(w).Flush(); err != nil {
				panic(err)
			}
		}
	}
}

// write writes so many bytes in pieces.
func write(w io.Writer, size, piece int) {
	for n := 0; n < size; n += piece {
		_, _ = w.Write(bytes.Repeat([]byte("x"), min(piece, size-n)))
	}
}

func TestAnswers(t *testing.T) {
	for _, tt := range rows {
		t.Run(tt.name, func(t *testing.T) {
			each(t, func(t *testing.T, store *spy) {
				run := tt.run
				if run == nil {
					run = paid
				}
				s := open(t, store, run, tt.opts...)
				var first answer
				for i, st := range tt.steps {
					a := s.send(t, st.call)
					if i == 0 {
						first = a
					}
					if st.kind != "" {
						wantProblem(t, a, st.status, st.kind)
					}
					if a.status != st.status || !bytes.Contains(a.body, []byte(st.body)) || a.replayed() != st.replayed {
						t.Errorf("step %d: %d %.200s, replayed %v, want %+v", i+1, a.status, a.body, a.replayed(), st)
					}
					if st.replayed && st.body == "" && !bytes.Equal(a.body, first.body) {
						t.Errorf("step %d: %.200s, and the first time %.200s", i+1, a.body, first.body)
					}
				}
				s.wantRuns(t, tt.runs)
			})
		})
	}
}

// An answer comes again with its headers, but for what belongs to one answer.
func TestRepeatIsByteForByte(t *testing.T) {
	each(t, func(t *testing.T, store *spy) {
		body := make([]byte, 70_000) // all bytes, more than is held back
		for i := range body {
			body[i] = byte(i * 7)
		}
		s := open(t, store, func(w http.ResponseWriter, _ *http.Request) {
			h := w.Header()
			h.Set("Content-Type", "application/octet-stream")
			h.Set("Content-Language", "de")
			h.Set("Content-Encoding", "x-none")
			h.Set("ETag", `"1"`)
			h.Set("Location", "/receipts/1")
			h["Link"] = []string{"</a>; rel=a", "</b>; rel=b"}
			h.Set("Vary", "Accept")
			h.Set("Set-Cookie", "session=1")
			h.Set("X-Receipt", "1")
			h.Set("X-Trace", "1")
			w.WriteHeader(http.StatusAccepted)
			h.Set("Location", "/too/late")
			_, _ = w.Write(body)
		}, idempotency.Headers("x-receipt"))
		first, again := s.send(t, call{}), s.send(t, call{})
		if !bytes.Equal(first.body, body) || !bytes.Equal(again.body, body) || again.status != first.status || !again.replayed() {
			t.Fatalf("first %d with %d bytes, then %d with %d bytes", first.status, len(first.body), again.status, len(again.body))
		}
		want := maps.Clone(first.header)
		for _, name := range []string{"Set-Cookie", "X-Trace"} {
			if want.Get(name) == "" {
				t.Errorf("the first answer has no %s", name)
			}
			delete(want, name)
		}
		want.Set("Idempotency-Replayed", "true")
		for _, h := range []http.Header{want, again.header} {
			delete(h, "Date")
			delete(h, "Content-Length")
		}
		if !maps.EqualFunc(want, again.header, slices.Equal) {
			t.Errorf("headers = %v, want %v", again.header, want)
		}
	})
}

// Nothing is written over an answer that was begun.
func TestAnswerOfAServiceComesFirst(t *testing.T) {
	s := open(t, &spy{Store: idempotency.NewMemory(0)}, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(202)
		_, _ = io.WriteString(w, "half")
		middleware.Answer(w, r, &guard.Error{Guard: "stock", Err: guard.ErrOutage})
	})
	for range 2 {
		if a := s.send(t, call{}); a.status != 202 || string(a.body) != "half" {
			t.Errorf("answer = %d %s", a.status, a.body)
		}
	}
	s.wantRuns(t, 1)
}

// A type that the server has found out is the same the second time.
func TestRepeatHasTheTypeThatWasSniffed(t *testing.T) {
	each(t, func(t *testing.T, store *spy) {
		s := open(t, store, func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "<ht")
			_, _ = io.WriteString(w, "ml>paid")
		})
		first, again := s.send(t, call{}), s.send(t, call{})
		if got, want := again.header.Get("Content-Type"), first.header.Get("Content-Type"); got != want || !strings.HasPrefix(want, "text/html") {
			t.Errorf("type %q, and %q the first time", got, want)
		}
	})
}

// The first answer says that it is not kept, where that is known when it begins.
func TestLargeAnswerSaysThatItIsNotStored(t *testing.T) {
	for _, tt := range []struct {
		name string
		run  http.HandlerFunc
		want string
	}{
		{"declared", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", fmt.Sprint(mib+1))
			write(w, mib+1, 1000)
		}, "false"},
		{"in one piece", func(w http.ResponseWriter, _ *http.Request) { write(w, mib+1, mib+1) }, "false"},
		{"in pieces", func(w http.ResponseWriter, _ *http.Request) { write(w, mib+1, 1000) }, ""},
		{"not too large", func(w http.ResponseWriter, _ *http.Request) { write(w, mib, mib) }, ""},
		{"an error, which is never stored", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", fmt.Sprint(mib+1))
			w.WriteHeader(500)
			write(w, mib+1, 1000)
		}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := open(t, &spy{Store: idempotency.NewMemory(0)}, tt.run)
			if a := s.send(t, call{}); a.header.Get("Idempotency-Stored") != tt.want {
				t.Errorf("Idempotency-Stored = %q, want %q", a.header.Get("Idempotency-Stored"), tt.want)
			}
		})
	}
}

// While the first one is at work, others are told to come later, or wait as long as the guard says.
func TestInFlight(t *testing.T) {
	each(t, func(t *testing.T, store *spy) {
		entered, leave := make(chan bool), make(chan bool)
		s := open(t, store, func(w http.ResponseWriter, r *http.Request) {
			entered <- true
			<-leave
			paid(w, r)
		})
		first := make(chan answer)
		go func() { first <- s.send(t, call{}) }()
		<-entered
		wantProblem(t, s.send(t, call{}), 409, "ErrInFlight")
		wantProblem(t, s.send(t, call{body: "other"}), 422, "ErrReused")
		close(leave)
		if a, again := <-first, s.send(t, call{}); a.status != 201 || !again.replayed() {
			t.Errorf("first %d, then %d", a.status, again.status)
		}
		s.wantRuns(t, 1)
	})
}

func TestWaitingRepeatGetsTheAnswer(t *testing.T) {
	each(t, func(t *testing.T, store *spy) {
		entered, leave := make(chan bool), make(chan bool)
		s := openWith(t, store, func(w http.ResponseWriter, r *http.Request) {
			entered <- true
			<-leave
			paid(w, r)
		}, []guard.Option{guard.Wait(time.Minute)})
		answers := make(chan answer)
		go func() { answers <- s.send(t, call{}) }()
		<-entered
		go func() { answers <- s.send(t, call{}) }()
		for len(s.locks.AskedFor()) < 2 {
			time.Sleep(time.Millisecond)
		}
		close(leave)
		a, b := <-answers, <-answers
		if a.status != 201 || b.status != 201 || a.replayed() == b.replayed() || !bytes.Equal(a.body, b.body) {
			t.Errorf("answers %+v, %+v, want one of them replayed", a, b)
		}
		s.wantRuns(t, 1)
	})
}

// Requests without a key, which all may have, exclude nobody by the fact of this package.
func TestRequestsWithoutAKeyRunBesideEachOther(t *testing.T) {
	entered, leave := make(chan bool), make(chan bool)
	s := open(t, &spy{Store: idempotency.NewMemory(0)}, func(http.ResponseWriter, *http.Request) {
		entered <- true
		<-leave
	}, idempotency.Optional())
	done := make(chan answer, 2)
	for range 2 {
		go func() { done <- s.send(t, call{keys: noKey}) }()
	}
	for range 2 {
		select {
		case <-entered:
		case a := <-done:
			t.Fatalf("refused: %d %s", a.status, a.body)
		}
	}
	close(leave)
	for range 2 {
		if a := <-done; a.status != 200 {
			t.Errorf("status %d", a.status)
		}
	}
}

// A rate that is used up is told as that, and not as a request in flight.
func TestRateIsToldAsARate(t *testing.T) {
	locks := memlock.New()
	paced := guard.Must(guard.New(locks, guard.Name("pace"), guard.Key("pace"), guard.OneKey(), guard.Rate(1, time.Hour)))
	own := guard.Must(guard.New(locks, guard.Name("order.pay"), guard.Key("pay:#{idempotency}")))
	once := guard.Must(idempotency.New(guard.Must(guard.Stack(own, paced)), idempotency.NewMemory(0), callerOf))
	h := once(http.HandlerFunc(paid))
	for _, tt := range []struct {
		key    string
		status int
		kind   string
	}{{"k-1", 201, ""}, {"k-1", 201, ""}, {"k-2", 429, "guard#ErrBusy"}} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, call{keys: []string{tt.key}}.request(t, t.Context(), ""))
		if w.Code != tt.status || !strings.Contains(w.Body.String(), tt.kind) {
			t.Errorf("%s: %d %s, want %d", tt.key, w.Code, w.Body, tt.status)
		}
	}
}

// Facts, Status and Respond are those of package middleware, and the errors of this package go the same way.
func TestWithGivesOptionsToTheGuard(t *testing.T) {
	var told []error
	respond := middleware.Respond(func(w http.ResponseWriter, _ *http.Request, p middleware.Problem) {
		told = append(told, p.Err)
		fmt.Fprint(w, p.Guard, " ", p.Title)
	})
	locks := memlock.New()
	g := guard.Must(guard.New(locks, guard.Name("order.pay"), guard.Key("order:#{path.id}:#{shop}")))
	once := guard.Must(idempotency.New(g, idempotency.NewMemory(0), callerOf, idempotency.With(respond, middleware.Status(guard.ErrBusy, 423),
		middleware.WithFacts("shop", func(*http.Request) (string, error) { return "s", nil }))))
	mux := http.NewServeMux()
	held := false
	mux.Handle("/orders/{id}", once(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		held = locks.ForceUnlock("order:7:s") && guard.Held(r.Context(), "order.pay")
	})))
	for _, tt := range []struct {
		keys   []string
		status int
		body   string
		err    error
	}{
		{noKey, 400, "order.pay No usable Idempotency-Key", idempotency.ErrKey},
		{[]string{"k-1"}, 500, "order.pay Lock lost", guard.ErrLost},
		{[]string{"k-1"}, 409, "order.pay Outcome unknown", idempotency.ErrUnknown},
	} {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, call{keys: tt.keys}.request(t, t.Context(), ""))
		if last := told[len(told)-1]; w.Code != tt.status || w.Body.String() != tt.body || !errors.Is(last, tt.err) {
			t.Errorf("%v: %d %s (%v), want %d %s", tt.keys, w.Code, w.Body, last, tt.status, tt.body)
		}
	}
	if !held {
		t.Error("the handler did not run under its lock")
	}
	hold := guard.Must(guard.New(locks, guard.Name("other"), guard.Key("order:7:s"), guard.OneKey()))
	err := guard.Must(guard.Job(hold, func(ctx context.Context) error {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, call{keys: []string{"k-2"}}.request(t, t.Context(), ""))
		if w.Code != 423 || w.Body.String() != "order.pay In flight" || w.Header().Get("Retry-After") == "" ||
			!errors.Is(told[len(told)-1], idempotency.ErrInFlight) || !errors.Is(told[len(told)-1], guard.ErrBusy) {
			t.Errorf("busy: %d %s, %v", w.Code, w.Body, told)
		}
		w = httptest.NewRecorder()
		if mux.ServeHTTP(w, call{method: "PUT"}.request(t, t.Context(), "")); w.Body.String() != "order.pay Locked by another request" {
			t.Errorf("busy without a record: %d %s", w.Code, w.Body)
		}
		return nil
	}))(t.Context())
	if err != nil {
		t.Error(err)
	}
}

// A form of many parts is read by the handler, whose files the server removes from the request that it knows.
func TestServerKnowsTheFormOfTheHandler(t *testing.T) {
	once := guard.Must(idempotency.New(guard.Must(guard.New(memlock.New(), guard.Name("g"), guard.Key("#{idempotency}"))), idempotency.NewMemory(0), callerOf))
	r := call{body: "--b\r\nContent-Disposition: form-data; name=a\r\n\r\n1\r\n--b--\r\n"}.request(t, t.Context(), "/")
	r.Header.Set("Content-Type", "multipart/form-data; boundary=b")
	once(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.FormValue("a") != "1" {
			t.Errorf("form = %v", r.MultipartForm)
		}
	})).ServeHTTP(httptest.NewRecorder(), r)
	if r.MultipartForm == nil {
		t.Error("the server knows nothing of the form")
	}
}

// Mistakes are errors that say what to do, all of them at once.
func TestNewReportsMistakes(t *testing.T) {
	locks, store := memlock.New(), idempotency.NewMemory(0)
	good := guard.Must(guard.New(locks, guard.Name("order.pay"), guard.Key("pay:#{idempotency}")))
	_, err := idempotency.New(nil, nil, nil, nil, idempotency.KeepFor(0), idempotency.BodyLimit(0), idempotency.Headers("set-cookie", "connection", ""))
	for _, want := range []string{"nil guard", "nil store", "nil caller", "nil option", "KeepFor", "BodyLimit(0)", `"set-cookie"`, `"connection"`, `""`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("New = %v, want %s in it", err, want)
		}
	}
	for _, tt := range []struct {
		g    *guard.Guard
		opts []idempotency.Option
		want string
	}{
		{guard.Must(guard.New(locks, guard.Name("order.pay"), guard.Key("pay:#{idempotency}"), guard.Limit(2))), nil, "several in at once"},
		{guard.Must(guard.New(locks, guard.Name("order.pay"), guard.Key("pay:#{idempotency}"), guard.Read())), nil, "several in at once"},
		{guard.Must(guard.New(locks, guard.Name("order.pay"), guard.Key("pay:#{idempotence}"))), nil, "idempotency"},
		{good, []idempotency.Option{idempotency.With(middleware.Status(guard.ErrBusy, 200))}, "status 200"},
		{good, []idempotency.Option{idempotency.With(nil)}, "nil option"},
	} {
		if _, err := idempotency.New(tt.g, store, callerOf, tt.opts...); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("New = %v, want %s in it", err, tt.want)
		}
	}
	once := guard.Must(idempotency.New(good, store, callerOf))
	if h := once(nil); h != nil {
		t.Errorf("of nothing it makes a %T", h)
	}
	w := httptest.NewRecorder()
	once(http.TimeoutHandler(http.HandlerFunc(paid), time.Minute, "late")).ServeHTTP(w, call{}.request(t, t.Context(), ""))
	if w.Code != 500 {
		t.Errorf("a TimeoutHandler is answered with %d, want 500", w.Code)
	}
}
