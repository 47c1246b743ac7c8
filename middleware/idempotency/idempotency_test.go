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
	"sync"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/lock/memlock"
	"github.com/latchkey-go/latchkey/middleware"
	"github.com/latchkey-go/latchkey/middleware/idempotency"
)

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
		w.WriteHeader(http.StatusAccepted)
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
			w.WriteHeader(http.StatusInternalServerError)
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
	let := sync.OnceFunc(func() { close(leave) })
	defer let()
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
	let()
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
