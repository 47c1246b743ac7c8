package idempotency_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/guard/guardtest"
	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/middleware/idempotency"
)

// stores are those that everything is played with.
var stores = []struct {
	name string
	open func(testing.TB) idempotency.Store
}{
	{"memory", func(testing.TB) idempotency.Store { return idempotency.NewMemory(0) }},
	{"redis", func(t testing.TB) idempotency.Store {
		s, err := idempotency.NewRedis(redistest.Any(t).Client(t), "shop:")
		if err != nil {
			t.Fatal(err)
		}
		return s
	}},
}

// each plays with a store of each sort.
func each(t *testing.T, play func(t *testing.T, s *spy)) {
	for _, s := range stores {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			play(t, &spy{Store: s.open(t)})
		})
	}
}

var errDown = errors.New("store: connection refused at 10.9.8.7")

// spy is a store that can be out of reach, and knows which key came last.
type spy struct {
	idempotency.Store
	failLook, failBegin, failFinish atomic.Bool
	deaf                            atomic.Bool // what fails has run nevertheless
	blind                           atomic.Bool // a look sees nothing, as if all had begun since
	key                             atomic.Value
}

func (s *spy) Begin(ctx context.Context, key string, r idempotency.Record, keep time.Duration) (idempotency.Record, error) {
	s.key.Store(key)
	if r.Owner == "" && s.blind.Load() {
		return r, nil
	}
	fails := r.Owner == "" && s.failLook.Load() || r.Owner != "" && s.failBegin.Load()
	if fails && !s.deaf.Load() {
		return idempotency.Record{}, errDown
	}
	found, err := s.Store.Begin(ctx, key, r, keep)
	if fails {
		return idempotency.Record{}, errDown
	}
	return found, err
}

func (s *spy) Finish(ctx context.Context, key string, r idempotency.Record, keep time.Duration) error {
	if s.failFinish.Load() {
		return errDown
	}
	return s.Store.Finish(ctx, key, r, keep)
}

// shop is a service with one handler, on a real socket.
type shop struct {
	*httptest.Server
	store *spy
	locks *guardtest.Locker
	runs  atomic.Int32 // of the handler
}

// open serves h behind the middleware at /orders/{id}.
func open(t *testing.T, store *spy, h http.HandlerFunc, opts ...idempotency.Option) *shop {
	t.Helper()
	return openWith(t, store, h, nil, opts...)
}

// openWith is open with more options of the guard.
func openWith(t *testing.T, store *spy, h http.HandlerFunc, declared []guard.Option, opts ...idempotency.Option) *shop {
	t.Helper()
	s := &shop{store: store, locks: guardtest.New()}
	declared = append([]guard.Option{guard.Name("order.pay"), guard.Key("pay:#{idempotency}")}, declared...)
	once, err := idempotency.New(guard.Must(guard.New(s.locks, declared...)), store, callerOf, opts...)
	if err != nil {
		t.Fatal(err)
	}
	counted := func(w http.ResponseWriter, r *http.Request) {
		s.runs.Add(1)
		h(w, r)
	}
	mux := http.NewServeMux()
	mux.Handle("/orders/{id}", once(http.HandlerFunc(counted)))
	s.Server = httptest.NewUnstartedServer(mux)
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // panics
	s.Start()
	t.Cleanup(func() { s.locks.WantNothingHeld(t) })
	t.Cleanup(s.Close) // comes first, and waits for the handlers
	return s
}

var errStranger = errors.New("a token that nobody has signed")

func callerOf(r *http.Request) (string, error) {
	if caller := r.Header.Get("Caller"); caller != "stranger" {
		return caller, nil
	}
	return "", errStranger
}

// call is a request. What is empty is that of ann's payment of order 7 with the key k-1.
type call struct {
	method, path, caller, body string
	keys                       []string // one header each
	stream                     bool     // of a length that is not declared
}

var noKey = []string{}

func (c call) request(t testing.TB, ctx context.Context, url string) *http.Request {
	t.Helper()
	def := func(s *string, value string) {
		if *s == "" {
			*s = value
		}
	}
	def(&c.method, http.MethodPost)
	def(&c.path, "/orders/7?currency=eur")
	def(&c.caller, "ann")
	def(&c.body, `{"cents": 100}`)
	if c.keys == nil {
		c.keys = []string{"k-1"}
	}
	var body io.Reader = strings.NewReader(c.body)
	if c.stream {
		body = io.MultiReader(body)
	}
	r, err := http.NewRequestWithContext(ctx, c.method, url+c.path, body)
	if err != nil {
		t.Fatal(err)
	}
	r.Header["Idempotency-Key"] = c.keys
	if c.caller != "nobody" {
		r.Header.Set("Caller", c.caller)
	}
	return r
}

// answer is a response.
type answer struct {
	status int
	header http.Header
	body   []byte
}

func (a answer) replayed() bool { return a.header.Get("Idempotency-Replayed") == "true" }

// send makes a request.
func (s *shop) send(t testing.TB, c call) answer {
	t.Helper()
	a, err := s.try(t, t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// try makes a request that may come to nothing.
func (s *shop) try(t testing.TB, ctx context.Context, c call) (answer, error) {
	t.Helper()
	res, err := s.Client().Transport.RoundTrip(c.request(t, ctx, s.URL)) // which follows no redirect
	if err != nil {
		return answer{}, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return answer{res.StatusCode, res.Header, body}, err
}

// wantProblem fails t unless a is that problem.
func wantProblem(t testing.TB, a answer, status int, kind string) {
	t.Helper()
	if a.status != status || !bytes.Contains(a.body, []byte("idempotency#"+kind+`"`)) || a.header.Get("Content-Type") != "application/problem+json" {
		t.Errorf("answer = %d %s, want %d %s", a.status, a.body, status, kind)
	}
	if !bytes.Contains(a.body, []byte(`"guard":"order.pay"`)) {
		t.Errorf("the problem does not name its guard: %s", a.body)
	}
	for _, secret := range []string{"k-1", "ann", "10.9.8.7"} {
		if bytes.Contains(a.body, []byte(secret)) {
			t.Errorf("the problem tells too much: %s", a.body)
		}
	}
	if retry := a.header.Get("Retry-After"); (retry != "") != (kind == "ErrInFlight" || kind == "ErrStore") {
		t.Errorf("%s has Retry-After %q", kind, retry)
	}
}

func (s *shop) wantRuns(t testing.TB, want int32) {
	t.Helper()
	if got := s.runs.Load(); got != want {
		t.Errorf("the handler ran %d times, want %d", got, want)
	}
}

// crash leaves the record that a process leaves which dies at work on the usual call.
func (s *shop) crash(t testing.TB) {
	t.Helper()
	s.store.failBegin.Store(true) // so that the handler does not run
	s.send(t, call{})
	s.store.failBegin.Store(false)
	key := s.store.key.Load().(string)
	mine := idempotency.Record{Print: printOf(t, call{}), Owner: "the dead"}
	if found, err := s.store.Begin(t.Context(), key, mine, time.Hour); err != nil || found.Owner != mine.Owner {
		t.Fatalf("Begin = %+v, %v", found, err)
	}
}

// printOf has the fingerprint of c told by another store.
func printOf(t testing.TB, c call) string {
	t.Helper()
	told := &teller{}
	once, err := idempotency.New(guard.Must(guard.New(guardtest.New(), guard.Name("tell"), guard.Key("#{idempotency}"))), told, callerOf)
	if err != nil {
		t.Fatal(err)
	}
	r := c.request(t, t.Context(), "")
	r.RequestURI = r.URL.RequestURI()
	once(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})).ServeHTTP(httptest.NewRecorder(), r)
	return told.begun.Print
}

// teller is a store that knows what was begun.
type teller struct{ begun idempotency.Record }

func (s *teller) Begin(_ context.Context, _ string, r idempotency.Record, _ time.Duration) (idempotency.Record, error) {
	s.begun = r
	return r, nil
}

func (s *teller) Finish(context.Context, string, idempotency.Record, time.Duration) error { return nil }

// paid answers for a payment.
func paid(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil || len(body) == 0 {
		http.Error(w, "no body", http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	_, _ = w.Write(append([]byte(`{"paid": `), append(body, '}')...))
}
