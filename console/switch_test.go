package console

import (
	"bytes"
	"context"
	"errors"
	"html"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/memlock"
)

// switchable is a registry with two guards, of which one can be switched.
func switchable() *guard.Registry {
	reg := guard.Must(guard.NewRegistry())
	for name, opts := range map[string][]guard.Option{"pay": {guard.Switchable()}, "ship": nil} {
		g := guard.Must(guard.New(memlock.New(), append(opts, guard.In(reg), guard.Name(name), guard.Key(name+":#{req}"))...))
		guard.Must(guard.Action(g, func(context.Context, string) error { return nil }))
	}
	return reg
}

func modeOf(t *testing.T, reg *guard.Registry) guard.Mode {
	t.Helper()
	for info := range reg.All() {
		if info.Spec.Name == "pay" {
			return info.Mode
		}
	}
	t.Fatal("no guard pay")
	return 0
}

// switcher is a console whose visitors may switch guards, and what it tells.
type switcher struct {
	reg  *guard.Registry
	site string
	h    *handler
	log  bytes.Buffer

	mu   sync.Mutex
	told []Switched
}

func newSwitcher(t *testing.T, opts ...Option) *switcher {
	t.Helper()
	s := &switcher{reg: switchable()}
	h, err := newHandler(newFake(), s.reg, append([]Option{AllowSwitch(allow), Log(slog.New(slog.NewTextHandler(&s.log, nil))),
		OnSwitch(func(_ context.Context, one Switched) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.told = append(s.told, one)
		})}, opts...))
	if err != nil {
		t.Fatal(err)
	}
	s.h, s.site = h, serveHandler(t, h)
	return s
}

// form loads the page on which pay is switched, and fills in its form.
func (s *switcher) form(t *testing.T, mode string) url.Values {
	t.Helper()
	a := get(t, s.site+"/switch?guard=pay")
	a.wants(t, "form", http.StatusOK, `<form action="switch" method="post"`)
	form := url.Values{"reason": {"stuck since noon"}, "name": {"Ada"}, "mode": {mode}, "for": {"90m"}}
	for _, m := range hiddenField.FindAllStringSubmatch(a.body, -1) {
		form.Set(m[1], html.UnescapeString(m[2]))
	}
	return form
}

func (s *switcher) send(t *testing.T, origin string, form url.Values) answered {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.site+"/switch", strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Origin", origin)
	return send(t, r)
}

// A guard is switched by a form that was shown. The log, the program and the page say so, and for how long.
func TestSwitch(t *testing.T) {
	s := newSwitcher(t)
	get(t, s.site+"/guards").wants(t, "before", http.StatusOK, `<a href="switch?guard=pay"`)
	a := s.send(t, s.site, s.form(t, "off"))
	if a.status != http.StatusSeeOther || a.header.Get("Location") != "guards#g-pay" {
		t.Fatalf("%d %v %s", a.status, a.header, a.body)
	}
	if mode := modeOf(t, s.reg); mode != guard.Off {
		t.Errorf("the guard is %v", mode)
	}
	if len(s.told) != 1 {
		t.Fatalf("told %+v", s.told)
	}
	got := s.told[0]
	if got.Guard != "pay" || got.Mode != guard.Off || got.Before != guard.On || got.Who != "Ada" || got.Remote == "" || got.Reason != "stuck since noon" ||
		got.Until.Sub(got.Time) != 90*time.Minute || got.Ended {
		t.Errorf("told %+v", got)
	}
	for _, want := range []string{"level=WARN", "guard switched by hand", "guard=pay", "mode=off", "who=Ada", "remote=127.0.0.1", `reason="stuck since noon"`, "until=" + got.Until.Format("2006-01-02T15:04")} {
		if !strings.Contains(s.log.String(), want) {
			t.Errorf("log %q lacks %s", &s.log, want)
		}
	}
	get(t, s.site+"/guards").wants(t, "after", http.StatusOK, `<span class="badge">off</span>`, "by <bdi>Ada</bdi>, until "+got.Until.Format("Mon 15:04:05")+": <bdi>stuck since noon</bdi>")
	get(t, s.site+"/switch?guard=pay").wants(t, "once more", http.StatusOK, "by <bdi>Ada</bdi>")
}

// The word of a session is who did it, and an hour is for how long, where nothing else is said.
func TestSwitchWithoutAField(t *testing.T) {
	s := newSwitcher(t, Who(func(*http.Request) string { return "from the session" }))
	form := s.form(t, "shadow")
	form.Del("for")
	if a := s.send(t, s.site, form); a.status != http.StatusSeeOther || len(s.told) != 1 || s.told[0].Who != "from the session" || s.told[0].Until.Sub(s.told[0].Time) != time.Hour {
		t.Errorf("%d, told %+v", a.status, s.told)
	}
	if strings.Contains(get(t, s.site+"/switch?guard=pay").body, `name="name"`) {
		t.Error("the form asks for a name")
	}
}

// Nothing but a confirmation that was shown switches a guard, for a time and a reason that are given, and only once.
func TestSwitchRefused(t *testing.T) {
	set := func(name, value string) func(*testing.T, *switcher, url.Values) {
		return func(_ *testing.T, _ *switcher, form url.Values) { form.Set(name, value) }
	}
	for _, tt := range []struct {
		name   string
		change func(t *testing.T, s *switcher, form url.Values)
		origin string
		status int
		want   string
	}{
		{"another origin", set("", ""), "http://other.example", 403, "another site"},
		{"no origin", set("", ""), "null", 403, "another site"},
		{"no ticket", set("ticket", ""), "", 409, "no ticket of this process for that"},
		{"a ticket that was made up", set("ticket", strings.Repeat("A", 75)), "", 409, "no ticket of this process for that"},
		{"the ticket of another console", func(t *testing.T, _ *switcher, form url.Values) {
			form.Set("ticket", newSwitcher(t).form(t, "off").Get("ticket"))
		}, "", 409, "no ticket of this process for that"},
		{"a mode that was not seen", set("seen", "shadow"), "", 409, "no ticket of this process for that"},
		{"switched meanwhile", func(_ *testing.T, s *switcher, _ url.Values) { _ = s.reg.Switch("pay", guard.Shadow) }, "", 409, "somebody has switched this guard meanwhile"},
		{"sent before", func(t *testing.T, s *switcher, form url.Values) {
			again := url.Values{}
			maps.Copy(again, form)
			again.Set("mode", "on")
			s.send(t, s.site, again).wants(t, "first", http.StatusSeeOther)
			s.told = nil
		}, "", 409, "the ticket was used before"},
		{"no reason", set("reason", " \n "), "", 422, "a reason"},
		{"no name", set("name", ""), "", 422, "your name"},
		{"no mode", set("mode", ""), "", 422, "Choose how"},
		{"another mode", set("mode", "sideways"), "", 422, "Choose how"},
		{"for too long", set("for", "24h1s"), "", 422, "24h"},
		{"for no time", set("for", "0s"), "", 422, "24h"},
		{"for what is no time", set("for", "a while"), "", 422, "value=\"a while\""},
		{"a guard that is not switchable", set("guard", "ship"), "", 404, "switchable"},
		{"no guard", set("guard", "<script>"), "", 404, "no such guard"},
		{"too long", set("reason", strings.Repeat("a", maxForm)), "", 404, "Nothing was changed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newSwitcher(t)
			form := s.form(t, "off")
			tt.change(t, s, form)
			if tt.origin == "" {
				tt.origin = s.site
			}
			s.send(t, tt.origin, form).wants(t, "form", tt.status, tt.want)
			if mode := modeOf(t, s.reg); mode == guard.Off || s.told != nil {
				t.Errorf("the guard is %v, and told is %+v", mode, s.told)
			}
		})
	}
}

// Without AllowSwitch, and with one that says no, there is neither a link, nor a form, nor anybody who takes one.
func TestSwitchNotAllowed(t *testing.T) {
	form := newSwitcher(t).form(t, "off")
	for name, opt := range map[string]Option{
		"no option": quiet, "nil": AllowSwitch(nil), "refuses": AllowSwitch(func(*http.Request) error { return errors.New("the secret reason") }), "to free": AllowFree(allow),
	} {
		reg := switchable()
		h, err := newHandler(newFake(), reg, []Option{quiet, opt})
		if err != nil {
			t.Fatal(err)
		}
		s := &switcher{reg: reg, site: serveHandler(t, h)}
		if a := get(t, s.site+"/guards"); a.status != http.StatusOK || strings.Contains(a.body, "switch?") {
			t.Errorf("%s: the page of the guards is %d, and has a link to switch one:\n%s", name, a.status, a.body)
		}
		page := get(t, s.site+"/switch?guard=pay")
		page.wants(t, name, http.StatusForbidden, "may not switch")
		s.send(t, s.site, form).wants(t, name, http.StatusForbidden, "may not switch")
		if mode := modeOf(t, reg); mode != guard.On || strings.Contains(page.body, "secret") {
			t.Errorf("%s: the guard is %v; %s", name, mode, page.body)
		}
	}
	s := serve(t, newFake(), AllowSwitch(allow))
	get(t, s.URL+"/switch?guard=pay").wants(t, "without a registry", http.StatusForbidden, "may not switch")
}

// By itself, a guard has the mode again that it had before it was switched by hand, unless it was switched otherwise meanwhile.
func TestSwitchEnds(t *testing.T) {
	hand := func(t *testing.T, s *switcher, m guard.Mode, d time.Duration) {
		t.Helper()
		one := Switched{Guard: "pay", Mode: m, Who: "Ada", Time: time.Now()}
		if err := s.h.switchGuard(&one, modeOf(t, s.reg).String(), d); err != nil {
			t.Error(err)
		}
	}
	program := func(s *switcher, m guard.Mode) { _ = s.reg.Switch("pay", m) }
	for _, tt := range []struct {
		name  string
		do    func(t *testing.T, s *switcher)
		want  guard.Mode // after 90 minutes
		ended int        // how often that is told
	}{
		{"by itself", func(t *testing.T, s *switcher) { hand(t, s, guard.Off, time.Hour) }, guard.On, 1},
		{"not before", func(t *testing.T, s *switcher) { hand(t, s, guard.Off, 2*time.Hour) }, guard.Off, 0},
		{"longer", func(t *testing.T, s *switcher) { hand(t, s, guard.Off, time.Hour); hand(t, s, guard.Off, 2*time.Hour) }, guard.Off, 0},
		{"off, and then shadow", func(t *testing.T, s *switcher) {
			hand(t, s, guard.Off, time.Hour)
			hand(t, s, guard.Shadow, 80*time.Minute)
		}, guard.On, 1},
		{"on by hand", func(t *testing.T, s *switcher) { hand(t, s, guard.Off, time.Hour); hand(t, s, guard.On, time.Minute) }, guard.On, 0},
		{"on by hand, and off by the program", func(t *testing.T, s *switcher) {
			hand(t, s, guard.Off, time.Hour)
			hand(t, s, guard.On, time.Minute)
			program(s, guard.Off)
		}, guard.Off, 0},
		{"on by the program", func(t *testing.T, s *switcher) { hand(t, s, guard.Off, time.Hour); program(s, guard.On) }, guard.On, 0},
		{"shadow by the program", func(t *testing.T, s *switcher) { hand(t, s, guard.Off, time.Hour); program(s, guard.Shadow) }, guard.Shadow, 0},
		{"off in the program", func(t *testing.T, s *switcher) { program(s, guard.Off); hand(t, s, guard.On, time.Hour) }, guard.Off, 1},
		{"by hand, by the program, and by hand", func(t *testing.T, s *switcher) {
			hand(t, s, guard.Off, time.Hour)
			program(s, guard.Shadow)
			hand(t, s, guard.Off, 80*time.Minute)
		}, guard.Shadow, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &switcher{reg: switchable()}
				h, err := newHandler(newFake(), s.reg, []Option{quiet, AllowSwitch(allow), OnSwitch(func(_ context.Context, one Switched) { s.told = append(s.told, one) })})
				if err != nil {
					t.Fatal(err)
				}
				s.h = h
				tt.do(t, s)
				time.Sleep(90 * time.Minute)
				synctest.Wait()
				if mode := modeOf(t, s.reg); mode != tt.want || len(s.told) != tt.ended {
					t.Errorf("the guard is %v, want %v; told %+v", mode, tt.want, s.told)
				}
				if tt.ended > 0 && (!s.told[0].Ended || s.told[0].Mode != tt.want || !s.told[0].Until.IsZero() || s.told[0].Who != "Ada") {
					t.Errorf("told %+v", s.told[0])
				}
				if v := h.guardView(h.guard("pay"), true); (v.Switched != nil) != (tt.name == "not before" || tt.name == "longer") {
					t.Errorf("the page says %+v", v.Switched)
				}
				time.Sleep(24 * time.Hour) // for what is left of them
			})
		})
	}
}

// Two people switch a guard at a time. One of them has.
func TestTwoSwitch(t *testing.T) {
	s := newSwitcher(t)
	one, other := s.form(t, "off"), s.form(t, "shadow")
	s.send(t, s.site, one).wants(t, "one", http.StatusSeeOther)
	s.send(t, s.site, other).wants(t, "the other", http.StatusConflict, "somebody has switched this guard meanwhile", `value="shadow" checked`, "stuck since noon")
	if mode := modeOf(t, s.reg); mode != guard.Off {
		t.Errorf("the guard is %v", mode)
	}
}

// Guards with bad outcomes come first, then all by their names. Each links to its locks where keys are shown whole.
func TestGuardsTable(t *testing.T) {
	reg := guard.Must(guard.NewRegistry())
	broken := errors.New("broken")
	down := func(context.Context, lock.Request) (lock.Hold, error) { return nil, broken }
	for name, l := range map[string]lock.Locker{"alpha": memlock.New(), "mid": memlock.New(), "zeta": locker(down)} {
		g := guard.Must(guard.New(l, guard.In(reg), guard.Name(name), guard.Key(name+":#{req}:x")))
		_ = guard.Must(guard.Action(g, func(context.Context, string) error { return nil }))(t.Context(), "7")
	}
	_ = guard.Must(guard.Action(guard.Must(guard.New(memlock.New(), guard.In(reg), guard.Name("func"), guard.KeyFunc(func(s string) (string, error) { return s, nil }))), func(context.Context, string) error { return nil }))
	for _, tt := range []struct {
		opt   Option
		links bool
	}{{quiet, false}, {ShowKeys(Whole), true}, {ShowKeys(func(key string) string { return key[:min(6, len(key))] }), false}} {
		h, err := newHandler(newFake(), reg, []Option{quiet, tt.opt})
		if err != nil {
			t.Fatal(err)
		}
		a := get(t, serveHandler(t, h)+"/guards")
		last := -1
		for _, row := range []string{`id="g-zeta"`, `id="g-alpha"`, `id="g-func"`, `id="g-mid"`} {
			at := strings.Index(a.body, row)
			if at <= last {
				t.Errorf("%s is at %d, after %d", row, at, last)
			}
			last = at
		}
		a.wants(t, "guards", http.StatusOK, `<span class="bad">outage 1</span>`, `<span>ok 1</span>`, "made by a function", "alpha:&lt;string&gt;:x", "console/switch_test.go:")
		if strings.Contains(a.body, `href="./?q=alpha%3A"`) != tt.links {
			t.Errorf("a link to the locks of alpha: want %t\n%s", tt.links, a.body)
		}
	}
}

type locker func(context.Context, lock.Request) (lock.Hold, error)

func (l locker) Acquire(ctx context.Context, r lock.Request) (lock.Hold, error) { return l(ctx, r) }
