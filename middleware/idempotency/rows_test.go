package idempotency_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/latchkey-go/latchkey/guard"
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
	{name: "no content", run: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }, steps: []step{
		{status: 204},
		{status: 204, replayed: true},
	}, runs: 1},
	{name: "a redirect", run: func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/receipts/1", http.StatusSeeOther) }, steps: []step{
		{status: 303},
		{status: 303, replayed: true},
	}, runs: 1},
	{name: "hints come first", run: func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusEarlyHints)
		w.WriteHeader(http.StatusAccepted)
	}, steps: []step{
		{status: 202},
		{status: 202, replayed: true},
	}, runs: 1},
	{name: "4xx is an answer", run: func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no such order", http.StatusNotFound) }, steps: []step{
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
	{name: "5xx", run: func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "later", http.StatusBadGateway) }, steps: []step{
		{status: 502},
		{status: 502},
		{call: call{body: "other"}, status: 502},
	}, runs: 3},
	{name: "Retry-After", run: func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusTooManyRequests)
	}, steps: []step{{status: 429}, {status: 429}}, runs: 2},
	{name: "Retry-After with 202", run: func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusAccepted)
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
		w.WriteHeader(http.StatusInternalServerError)
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
