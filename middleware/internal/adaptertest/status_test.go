package adaptertest

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/middleware"
)

// A statusCase sends one request to one guard.
type statusCase struct {
	name    string
	locker  Locker
	guard   []guard.Option // key defaults to pathKey
	options []middleware.Option
	request func(*http.Request) // default: POST with the body {"id":"7f3a"}
	chunked bool
	keyless bool             // guard has a key function
	gzip    bool             // by middleware further out, which has headers of its own
	handler http.HandlerFunc // default: answers 200 "done"

	status int
	typ    string // what follows # in the problem's type; about:blank if empty
	fact   string // the problem's
	detail string // a part of the problem's
	retry  string // Retry-After
	ran    bool
	body   string // for what is no problem
	broken bool   // the client gets no whole response
}

// ofBodies are headers that no problem has.
var ofBodies = []string{
	"Accept-Ranges", "Cache-Control", "Content-Disposition", "Content-Encoding", "Content-Language", "Content-Range", "Etag", "Expires", "Last-Modified", "Location",
}

// Statuses sends one request for each line of the table, over a socket.
func Statuses(t *testing.T, mount Mount) {
	for _, tt := range statusCases {
		t.Run(tt.name, func(t *testing.T) { tt.run(t, mount) })
	}
}

func (tt statusCase) run(t *testing.T, mount Mount) {
	ran := false
	handler := tt.handler
	if handler == nil {
		handler = text(200, "done")
	}
	spec := guard.Spec{Name: "order.settle", Key: pathKey}
	if tt.keyless {
		spec.Key = ""
	}
	g := guard.Must(guard.New(tt.locker, append([]guard.Option{guard.FromSpec(spec)}, tt.guard...)...))
	s := httptest.NewServer(contexts(mount(t, g, func(w http.ResponseWriter, r *http.Request) {
		ran = true
		handler(w, r)
	}, tt.options...)))
	got, err := tt.send(t, s)
	s.Close()
	if ran != tt.ran {
		t.Errorf("ran = %v, want %v", ran, tt.ran)
	}
	if tt.broken {
		if err == nil {
			t.Errorf("got a whole response: %+v", got)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	tt.check(t, got)
}

// response is what a client got, with all of the body.
type response struct {
	method string
	status int
	header http.Header
	body   string
}

func (tt statusCase) send(t *testing.T, s *httptest.Server) (response, error) {
	r, err := http.NewRequest(http.MethodPost, s.URL+"/orders/"+secret, nil)
	if err != nil {
		t.Fatal(err)
	}
	body(`{"id":"7f3a"}`)(r)
	r.Header.Set("Content-Type", "application/json")
	if tt.request != nil {
		tt.request(r)
	}
	if tt.chunked {
		r.ContentLength = -1
	}
	if tt.gzip {
		r.Header.Set("Test-Gzip", "1")
	}
	res, err := s.Client().Do(r)
	if err != nil {
		return response{}, err
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	return response{r.Method, res.StatusCode, res.Header, string(data)}, err
}

func (tt statusCase) check(t *testing.T, got response) {
	if got.status != tt.status {
		t.Errorf("status = %d, want %d", got.status, tt.status)
	}
	if retry := got.header.Get("Retry-After"); retry != tt.retry {
		t.Errorf("Retry-After = %q, want %q", retry, tt.retry)
	}
	if tt.problem() {
		tt.checkProblem(t, got)
	} else if got.body != tt.body {
		t.Errorf("body = %q, want %q", got.body, tt.body)
	}
}

// problem reports whether the adapter answers with a problem, neither the handler nor nobody.
func (tt statusCase) problem() bool {
	return tt.typ != "" || !tt.ran && tt.status >= http.StatusBadRequest && tt.status != http.StatusServiceUnavailable
}

func (tt statusCase) checkProblem(t *testing.T, got response) {
	if typ := got.header.Get("Content-Type"); typ != "application/problem+json" {
		t.Errorf("Content-Type = %q", typ)
	}
	for _, name := range ofBodies {
		want := ""
		if tt.gzip && name == "Cache-Control" {
			want = "no-store"
		}
		if left := got.header.Get(name); left != want {
			t.Errorf("%s = %q, want %q", name, left, want)
		}
	}
	if got.method == http.MethodHead {
		if got.body != "" {
			t.Errorf("HEAD with body %q", got.body)
		}
		return
	}
	if strings.Contains(got.body, secret) || strings.Contains(got.body, "10.9.8.7") || strings.Contains(got.body, "internal.job") {
		t.Errorf("body tells too much: %s", got.body)
	}
	var p struct {
		Type, Title, Detail, Guard, Fact string
		Status                           int
	}
	if err := json.Unmarshal([]byte(got.body), &p); err != nil {
		t.Fatalf("body %q: %v", got.body, err)
	}
	if p.Status != tt.status || p.Guard != "order.settle" || p.Title == "" {
		t.Errorf("problem = %+v", p)
	}
	if !strings.Contains(p.Detail, tt.detail) {
		t.Errorf("detail = %q, want %q in it", p.Detail, tt.detail)
	}
	if p.Fact != tt.fact {
		t.Errorf("fact = %q, want %q in %s", p.Fact, tt.fact, got.body)
	}
	want := "about:blank"
	if tt.typ != "" {
		want = "https://pkg.go.dev/github.com/latchkey-go/latchkey/guard#" + tt.typ
	}
	if p.Type != want {
		t.Errorf("type = %q, want %q", p.Type, want)
	}
}
