package console

import (
	"bytes"
	"context"
	"errors"
	"html"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/redisson"
)

var hiddenField = regexp.MustCompile(`<input type="hidden" name="(\w+)" value="([^"]*)">`)

// confirmation loads the page that asks whether to free a lock, and returns its form.
func confirmation(t *testing.T, s *httptest.Server, key string) url.Values {
	t.Helper()
	a := get(t, s.URL+"/free?key="+url.QueryEscape(key))
	if a.status != http.StatusOK {
		t.Fatalf("confirmation: %d %s", a.status, a.body)
	}
	form := url.Values{"reason": {"stuck since noon"}, "name": {"Ada"}}
	for _, m := range hiddenField.FindAllStringSubmatch(a.body, -1) {
		form.Set(m[1], html.UnescapeString(m[2]))
	}
	return form
}

// submit sends a form as a browser does that shows a page of origin.
func submit(t *testing.T, s *httptest.Server, origin string, form url.Values) answered {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+"/free", strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if origin != "" {
		r.Header.Set("Origin", origin)
	}
	return send(t, r)
}

func TestFree(t *testing.T) {
	var told []Freed
	var log bytes.Buffer
	f := newFake(heldLock("order:42", clientA+":1"))
	s := serve(t, f, AllowFree(allow), OnFree(func(_ context.Context, f Freed) { told = append(told, f) }), Log(slog.New(slog.NewTextHandler(&log, nil))))
	a := submit(t, s, s.URL, confirmation(t, s, "order:42"))
	if a.status != http.StatusSeeOther || !strings.HasPrefix(a.header.Get("Location"), "lock?ref=") {
		t.Fatalf("%d %v %s", a.status, a.header, a.body)
	}
	if _, _, freed := f.counts(); len(freed) != 1 || freed[0] != "order:42" {
		t.Errorf("freed %q", freed)
	}
	if len(told) != 1 || told[0].Key != "order:42" || told[0].Who != "Ada" || told[0].Reason != "stuck since noon" || told[0].Err != nil ||
		told[0].Remote == "" || told[0].Time.IsZero() || told[0].Object.Holders[0].ID != clientA+":1" {
		t.Errorf("told %+v", told)
	}
	for _, want := range []string{"lock freed by hand", "who=Ada", `reason="stuck since noon"`, "level=WARN"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("log %q lacks %s", log.String(), want)
		}
	}
	if strings.Contains(log.String(), "order:42") {
		t.Errorf("the log has a key that is not shown: %s", log.String())
	}
	to := a.header.Get("Location")
	for link, says := range map[string]bool{to: true, strings.Split(to, "&freed=")[0] + "&freed=1": false, "lock?key=other&freed=" + strings.Split(to, "&freed=")[1]: false} {
		if page := get(t, s.URL+"/"+link); strings.Contains(page.body, "You freed this lock at ") != says {
			t.Errorf("%s says that it was freed: want %t", link, says)
		}
	}
}

func TestWhoIsTheProgramsWord(t *testing.T) {
	var told []Freed
	s := serve(t, newFake(heldLock("a", clientA+":1")), AllowFree(allow), Who(func(*http.Request) string { return "from the session" }),
		OnFree(func(_ context.Context, f Freed) { told = append(told, f) }))
	submit(t, s, s.URL, confirmation(t, s, "a"))
	if len(told) != 1 || told[0].Who != "from the session" {
		t.Errorf("told %+v, and not what the session says", told)
	}
}

// refusedForms are confirmations that free nothing.
var refusedForms = []struct {
	name   string
	change func(t *testing.T, s *httptest.Server, f *fakeRedis, form url.Values) (origin string)
	status int
	want   string
}{
	{"from another origin", func(*testing.T, *httptest.Server, *fakeRedis, url.Values) string { return "http://other.example" }, 403, "another site"},
	{"from a page without an origin", func(*testing.T, *httptest.Server, *fakeRedis, url.Values) string { return "null" }, 403, "another site"},
	{"no ticket", func(_ *testing.T, s *httptest.Server, _ *fakeRedis, form url.Values) string {
		form.Del("ticket")
		return s.URL
	}, 403, "made by another process"},
	{"a ticket that was made up", func(_ *testing.T, s *httptest.Server, _ *fakeRedis, form url.Values) string {
		form.Set("ticket", strings.Repeat("A", len(form.Get("ticket"))))
		return s.URL
	}, 403, "made by another process"},
	{"the ticket of another console", func(t *testing.T, s *httptest.Server, f *fakeRedis, form url.Values) string {
		form.Set("ticket", confirmation(t, serve(t, f, AllowFree(allow)), "a").Get("ticket"))
		return s.URL
	}, 403, "made by another process"},
	{"the ticket of another lock", func(t *testing.T, s *httptest.Server, f *fakeRedis, form url.Values) string {
		f.put(heldLock("b", clientA+":1"))
		form.Set("ticket", confirmation(t, s, "b").Get("ticket"))
		return s.URL
	}, 403, "made by another process"},
	{"for holders that were not seen", func(t *testing.T, s *httptest.Server, f *fakeRedis, form url.Values) string {
		o := heldLock("a", clientB+":1")
		form.Set("seen", heldBy(&o))
		f.put(o)
		return s.URL
	}, 403, "made by another process"},
	{"another holder", func(_ *testing.T, s *httptest.Server, f *fakeRedis, _ url.Values) string {
		f.put(heldLock("a", clientA+":2"))
		return s.URL
	}, 409, "another holder now"},
	{"one reader more", func(_ *testing.T, s *httptest.Server, f *fakeRedis, _ url.Values) string {
		o := heldLock("a", clientA+":1")
		o.Holders = append(o.Holders, redissonHolder(clientB+":1"))
		f.put(o)
		return s.URL
	}, 409, "another holder now"},
	{"no holder", func(_ *testing.T, s *httptest.Server, f *fakeRedis, _ url.Values) string {
		f.mu.Lock()
		delete(f.objects, "a")
		f.mu.Unlock()
		return s.URL
	}, 409, "Nobody holds this lock any more"},
	{"no reason", func(_ *testing.T, s *httptest.Server, _ *fakeRedis, form url.Values) string {
		form.Set("reason", " \n ")
		return s.URL
	}, 422, "Give a reason"},
	{"no name", func(_ *testing.T, s *httptest.Server, _ *fakeRedis, form url.Values) string {
		form.Del("name")
		return s.URL
	}, 422, "Give your name"},
	{"Redis is down", func(_ *testing.T, s *httptest.Server, f *fakeRedis, _ url.Values) string {
		f.fail(errDown)
		return s.URL
	}, 503, "Nothing was changed"},
	{"too long", func(_ *testing.T, s *httptest.Server, _ *fakeRedis, form url.Values) string {
		form.Set("reason", strings.Repeat("a", maxForm))
		return s.URL
	}, 400, "too long"},
}

// Nothing but a confirmation that was shown for the lock as it is frees it, and each only once.
func TestFreeRefused(t *testing.T) {
	for _, tt := range refusedForms {
		t.Run(tt.name, func(t *testing.T) {
			f := newFake(heldLock("a", clientA+":1"))
			s := serve(t, f, AllowFree(allow), OnFree(func(_ context.Context, f Freed) { t.Errorf("told %+v", f) }))
			form := confirmation(t, s, "a")
			submit(t, s, tt.change(t, s, f, form), form).wants(t, "form", tt.status, tt.want)
			if _, _, freed := f.counts(); freed != nil {
				t.Errorf("freed %q", freed)
			}
		})
	}
}

func TestFreeOnlyOnce(t *testing.T) {
	f := newFake(heldLock("a", clientA+":1"))
	s := serve(t, f, AllowFree(allow))
	form := confirmation(t, s, "a")
	submit(t, s, s.URL, form).wants(t, "first", http.StatusSeeOther)
	f.put(heldLock("a", clientA+":1")) // as a thread of Java that comes again
	submit(t, s, s.URL, form).wants(t, "again", http.StatusConflict, "sent before")
	if _, _, freed := f.counts(); len(freed) != 1 {
		t.Errorf("freed %d times", len(freed))
	}
}

// Without AllowFree, and with one that says no, there is neither a link, nor a form, nor anybody who takes one.
func TestReadOnly(t *testing.T) {
	form := confirmation(t, serve(t, newFake(heldLock("a", clientA+":1")), AllowFree(allow)), "a")
	for name, opts := range map[string][]Option{
		"no option": nil, "nil": {AllowFree(nil)}, "refuses": {AllowFree(func(*http.Request) error { return errors.New("not on call") })},
	} {
		f := newFake(heldLock("a", clientA+":1"))
		s := serve(t, f, opts...)
		if a := get(t, s.URL+"/lock?key=a"); a.status != http.StatusOK || strings.Contains(a.body, `href="free`) {
			t.Errorf("%s: the lock's page is %d and has a link to free it:\n%s", name, a.status, a.body)
		}
		get(t, s.URL+"/free?key=a").wants(t, name, http.StatusForbidden, "may not free")
		submit(t, s, s.URL, form).wants(t, name, http.StatusForbidden, "may not free")
		if _, _, freed := f.counts(); freed != nil {
			t.Errorf("%s: freed %q", name, freed)
		}
	}
}

// A ticket is good until its time is over, and its number is remembered for no longer.
func TestTicketGetsOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newForms()
		first, second := f.ticket("a"), f.ticket("a")
		if err := f.use(first, "b"); !errors.Is(err, errForged) {
			t.Errorf("use for something else = %v, want %v", err, errForged)
		}
		if err := f.use(first, "a"); err != nil {
			t.Errorf("use = %v", err)
		}
		if err := f.use(first, "a"); !errors.Is(err, errUsed) {
			t.Errorf("use again = %v, want %v", err, errUsed)
		}
		time.Sleep(formLife + 2*time.Second)
		if err := f.use(second, "a"); !errors.Is(err, errOld) {
			t.Errorf("use too late = %v, want %v", err, errOld)
		}
		if err := f.use(f.ticket("a"), "a"); err != nil || len(f.used) != 1 {
			t.Errorf("use = %v, with %d tickets remembered, want 1", err, len(f.used))
		}
	})
}

func redissonHolder(id string) redisson.Holder { return redisson.Holder{ID: id, Count: 1} }
