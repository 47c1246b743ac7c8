package console

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// Without Authorize, only what can come from this machine alone is answered.
func TestOnlyThisMachine(t *testing.T) {
	h, err := newHandler(newFake(), nil, []Option{quiet})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		remote, host string
		header       string
		want         int
	}{
		{"127.0.0.1:5000", "localhost:8080", "", 200},
		{"127.0.0.1:5000", "LOCALHOST.", "", 200},
		{"127.3.2.1:5000", "127.0.0.1:8080", "", 200},
		{"[::1]:5000", "[::1]:8080", "", 200},
		{"[::1]:5000", "[::1]", "", 200},
		{"[::ffff:127.0.0.1]:5000", "localhost", "", 200},
		// from elsewhere
		{"192.0.2.1:5000", "localhost:8080", "", 403},
		{"[2001:db8::1]:5000", "localhost:8080", "", 403},
		{"@", "localhost", "", 403},
		{"", "localhost", "", 403},
		// a name that a stranger lets point here
		{"127.0.0.1:5000", "rebound.example:8080", "", 403},
		{"127.0.0.1:5000", "localhost.example", "", 403},
		{"127.0.0.1:5000", "127.0.0.1.example", "", 403},
		{"127.0.0.1:5000", "192.0.2.1", "", 403},
		{"127.0.0.1:5000", "0.0.0.0:8080", "", 403},
		{"127.0.0.1:5000", "", "", 403},
		// through a proxy on this machine
		{"127.0.0.1:5000", "localhost:8080", "X-Forwarded-For", 403},
		{"127.0.0.1:5000", "localhost:8080", "Forwarded", 403},
		{"127.0.0.1:5000", "localhost:8080", "Via", 403},
		{"127.0.0.1:5000", "localhost:8080", "X-Real-IP", 403},
	} {
		r := httptest.NewRequest(http.MethodGet, "/guards", nil)
		r.RemoteAddr, r.Host = tt.remote, tt.host
		if tt.header != "" {
			r.Header.Set(tt.header, "192.0.2.1")
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != tt.want {
			t.Errorf("from %s for %s (%s): %d, want %d", tt.remote, tt.host, tt.header, w.Code, tt.want)
		}
	}
}

// Authorize decides alone, and a nil one is none.
func TestAuthorize(t *testing.T) {
	decide := func(r *http.Request) error {
		if r.Header.Get("Operator") == "" {
			return errors.New("the secret reason")
		}
		return nil
	}
	for _, tt := range []struct {
		check    func(*http.Request) error
		operator string
		want     int
	}{
		{nil, "yes", 403}, {decide, "yes", 200}, {decide, "", 403},
	} {
		h, err := newHandler(newFake(), nil, []Option{quiet, Authorize(tt.check)})
		if err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRequest(http.MethodGet, "http://locks.example/guards", nil) // from 192.0.2.1
		r.Header.Set("Operator", tt.operator)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != tt.want || strings.Contains(w.Body.String(), "secret") {
			t.Errorf("operator %q: %d %s, want %d", tt.operator, w.Code, w.Body, tt.want)
		}
	}
}

// Every answer, also a refusal, forbids all that a page could be misused for.
func TestHeaders(t *testing.T) {
	s := serve(t, newFake())
	for _, page := range []string{"/", "/guards", "/nowhere", "/style.css", "/lock?key=a", "/free", "/switch"} {
		a := get(t, s.URL+page)
		for name, want := range map[string]string{
			"Content-Security-Policy": "default-src 'none'", "X-Content-Type-Options": "nosniff",
			"Cache-Control": "no-store", "X-Frame-Options": "DENY", "Referrer-Policy": "same-origin",
		} {
			if !strings.Contains(a.header.Get(name), want) {
				t.Errorf("%s: %s is %q, want %s", page, name, a.header.Get(name), want)
			}
		}
		policy := a.header.Get("Content-Security-Policy")
		if !strings.Contains(policy, "frame-ancestors 'none'") || strings.Contains(policy, "unsafe") {
			t.Errorf("%s: %s", page, policy)
		}
		if strings.Contains(a.body, "<style") || strings.Contains(a.body, " style=") || strings.Contains(a.body, " onclick=") ||
			strings.Contains(a.body, "http://") && page != "/style.css" || strings.Contains(a.body, "https://") {
			t.Errorf("%s has something that its policy forbids:\n%s", page, a.body)
		}
	}
}

// A page of another site can't have Redis asked, not even without reading the answer.
func TestEmbeddedElsewhere(t *testing.T) {
	f := newFake()
	s := serve(t, f)
	for _, tt := range []struct {
		site, mode string
		want       int
	}{{"cross-site", "no-cors", 403}, {"cross-site", "cors", 403}, {"same-site", "no-cors", 403}, {"cross-site", "navigate", 200}, {"same-origin", "cors", 200}, {"none", "navigate", 200}} {
		before, _, _ := f.counts()
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+"/", nil)
		r.Header.Set("Sec-Fetch-Site", tt.site)
		r.Header.Set("Sec-Fetch-Mode", tt.mode)
		a := send(t, r)
		if after, _, _ := f.counts(); a.status != tt.want || tt.want == 403 && after != before {
			t.Errorf("%s %s: %d, want %d; %d searches", tt.site, tt.mode, a.status, tt.want, after-before)
		}
	}
}

func TestMethods(t *testing.T) {
	s := serve(t, newFake())
	for _, method := range []string{http.MethodPut, http.MethodDelete, http.MethodPatch, http.MethodOptions, "FREE"} {
		r, _ := http.NewRequestWithContext(t.Context(), method, s.URL+"/free?key=a", nil)
		if a := send(t, r); a.status != http.StatusMethodNotAllowed || a.header.Get("Allow") == "" {
			t.Errorf("%s: %d, Allow %q", method, a.status, a.header.Get("Allow"))
		}
	}
	for _, page := range []string{"", "lock", "guards", "events", "nowhere"} {
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+"/"+page, strings.NewReader(url.Values{"key": {"a"}}.Encode()))
		if a := send(t, r); a.status != http.StatusNotFound {
			t.Errorf("POST /%s: %d, want 404", page, a.status)
		}
	}
}

// The same handler serves under any prefix, stripped or not.
func TestPrefixes(t *testing.T) {
	h, err := newHandler(newFake(heldLock("order:42", clientA+":1")), nil, []Option{quiet, ShowKeys(Whole)})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/plain/locks/", h)
	mux.Handle("/stripped/", http.StripPrefix("/stripped", h))
	mux.Handle("/bare/", http.StripPrefix("/bare/", h))
	mounted := httptest.NewServer(mux)
	defer mounted.Close()
	root := httptest.NewServer(h)
	defer root.Close()
	for _, prefix := range []string{mounted.URL + "/plain/locks/", mounted.URL + "/stripped/", mounted.URL + "/bare/", root.URL + "/"} {
		base, err := url.Parse(prefix)
		if err != nil {
			t.Fatal(err)
		}
		for _, page := range []struct{ at, want string }{
			{"./", "order:42"}, {"lock?key=order%3A42", "holds it"}, {"guards", "Guards"}, {"find", "Why is it locked?"}, {"style.css", "--accent"}, {"script.js", "EventSource"},
		} {
			to, err := base.Parse(page.at)
			if err != nil {
				t.Fatal(err)
			}
			get(t, to.String()).wants(t, to.String(), http.StatusOK, page.want)
		}
		for _, part := range strings.Split(get(t, prefix).body, `href="`)[1:] {
			if href, _, _ := strings.Cut(part, `"`); strings.HasPrefix(href, "/") || strings.Contains(href, "://") {
				t.Errorf("%s has the link %s, which is not relative", prefix, href)
			}
		}
	}
}
