package guard_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/keyexpr/spel"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/memlock"
)

// bounds is a locker that gives every permit, unless it is told to be busy, and serves levels and rates.
type bounds struct {
	lock.Locker       // that serves them; or nil
	unfit       error // of ServesLevels
	busy        error // in place of a permit

	mu        sync.Mutex
	requests  []lock.Request
	templates [][]string // that ServesLevels has seen
	reserved  int        // how many were asked for together
}

func newBounds() *bounds { return new(bounds) }

// permit is a hold of bounds.
type permit struct{ ctx context.Context }

func (p permit) Context() context.Context      { return p.ctx }
func (p permit) Release(context.Context) error { return nil }

func (l *bounds) ServesLevels(keys ...string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.templates = append(l.templates, keys)
	return l.unfit
}

func (l *bounds) Acquire(ctx context.Context, r lock.Request) (lock.Hold, error) {
	if err := l.ask(r); err != nil {
		return nil, err
	}
	return permit{ctx}, r.Validate()
}

func (l *bounds) Peek(_ context.Context, r lock.Request) error { return l.ask(r) }

func (l *bounds) Reserve(ctx context.Context, rs []lock.Request) (context.Context, int, func(), error) {
	l.reserved += len(rs)
	return ctx, len(rs), func() {}, nil
}

func (l *bounds) ask(r lock.Request) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	r.Holder = ""
	l.requests = append(l.requests, r)
	return l.busy
}

// asked returns what was asked for since the last time.
func (l *bounds) asked() []lock.Request {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.requests
	l.requests = nil
	return all
}

// Call is a request that somebody makes for a tenant.
type Call struct {
	User, Tenant string
	Plan         struct{ Slots int }
	Slots        any
	Tags         []string
}

func called(context.Context, Call) (string, error) { return "called", nil }

// calling puts a guard with a key for each user in front of called.
func calling(t *testing.T, l lock.Locker, opts ...guard.Option) func(context.Context, Call) (string, error) {
	t.Helper()
	g, err := guard.New(l, append([]guard.Option{guard.Name("call"), guard.Key("user:#{req.User}")}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	f, err := guard.Func(g, called)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func alice() Call {
	c := Call{User: "alice", Tenant: "acme", Slots: "7", Tags: []string{"a"}}
	c.Plan.Slots = 3
	return c
}

// Levels are one or two, each of a limit and a key. What separates them does not in a hole.
func TestGrammarOfLevels(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"20 of all", ""},
		{"1 of a, 2 of b", ""},
		{"1 of a,2 of b", ""},
		{"  1\tof  a  ,  2 of b ", ""},
		{"20 of all of us", ""},
		{"20 of tenant:{#{req.Tenant}}", ""},
		{"#{req.Plan.Slots} of tenant:{#{req.Tenant}}, 999999999 of all", ""},
		{`#{req.User == "a, 2 of b" ? 1 : 2} of #{req.User ?? "x, 3 of y"}`, ""},
		{`1 of a#{","}b`, ""},
		{`1 of ##{all}`, ""},

		{"", ""}, // is none
		{"x", "bad level \"x\", want one or two as in"},
		{"20", "bad level \"20\""},
		{"20 all", "bad level"},
		{"20of all", "bad level"},
		{"of all", "bad level"},
		{"20 of", "bad level"},
		{"20 of ", "bad level"},
		{"20 of all,", `bad level ""`},
		{", 20 of all", "bad level"},
		{"20 of a,b", `bad level "b", want one or two as in "20 of all" or "#{req.X} of all", and a comma in a key as #{","}`},
		{"1 of a, 2 of b, 3 of c", `bad level " 3 of c", want one or two`},
		{"0 of all", "bad level"},
		{"-1 of all", "bad level"},
		{"1.5 of all", "bad level"},
		{"9999999999 of all", "bad level"},
		{"many of all", "bad level"},
		{"#{req.A}0 of all", "bad level"},
		{"#{req.A}#{req.B} of all", "bad level"},
		{"##{req.A} of all", "bad level"},
		{"#{req.A of all", "bad level"},
		{"#{req.A +} of all", "levels: keyexpr: not an expression"},
		{"1 of #{req.A +}", "levels: keyexpr: not an expression"},
		{"1 of #{req.A", "levels: keyexpr: "},
		{"1 of a, 2 of a", `levels need keys of their own, and not one of ["k" "a" "a"] twice`},
		{"1 of k", `levels need keys of their own, and not one of ["k" "k"] twice`},
		{"20 of all wait=2s", "levels: wait= would be a part of the key"},
	} {
		s := guard.Spec{Key: "k", Limit: 1, Kind: lock.Permit, Levels: tt.text}
		if err := s.Validate(); (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("levels %q: %v, want %q", tt.text, err, tt.want)
		}
		if tt.want != "" || tt.text == "" {
			continue
		}
		var read guard.Spec
		if err := read.UnmarshalText([]byte(s.String())); read != s || err != nil {
			t.Errorf("%q comes back as %+v, %v", s, read, err)
		}
	}
}

// The attributes of a text that are bounds are read one by one, up to the end of each.
func TestBoundsInText(t *testing.T) {
	for text, want := range map[string]string{
		"k; limit=1; levels=20 of all, x":            "bad level",
		"k; limit=1; levels=20 of all wait=2s":       "write ; wait=2s",
		"k; limit=1; levels=20 of all; 3 of x":       "unknown attribute",
		"k; limit=1; rate=10":                        "bad rate",
		"k; limit=1; burst=0":                        "bad burst",
		`k; limit=1; rate="10/1m, burst=1"`:          "bad rate",
		"k; limit=1; levels=1 of a; levels=2 of all": "given twice",
	} {
		if err := new(guard.Spec).UnmarshalText([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	commented := strings.Join([]string{"a: levels=20 of all", "the most"}, " # ")
	if _, err := guard.ParseSpecs(commented); err == nil || !strings.Contains(err.Error(), "a comment would be a part of the key") {
		t.Errorf("a comment behind levels: %v", err)
	}
}

// A rate is so many calls within a time, and a burst how many of them begin at once, with as much time as the rate gives those.
func TestRatesAreAskedFor(t *testing.T) {
	for _, tt := range []struct {
		rate  string
		burst int
		want  lock.Rate
		fails string
	}{
		{"10/1m", 0, lock.Rate{Permits: 10, Interval: time.Minute}, ""},
		{"10/60s", 0, lock.Rate{Permits: 10, Interval: time.Minute}, ""},
		{"10/1m", 10, lock.Rate{Permits: 10, Interval: time.Minute}, ""},
		{"10/1m", 1, lock.Rate{Permits: 1, Interval: 6 * time.Second}, ""},
		{"10/1m", 20, lock.Rate{Permits: 20, Interval: 2 * time.Minute}, ""},
		{"1/1ms", 0, lock.Rate{Permits: 1, Interval: time.Millisecond}, ""},
		{"3/100ms", 1, lock.Rate{Permits: 1, Interval: 34 * time.Millisecond}, ""},
		{"7/1s", 2, lock.Rate{Permits: 2, Interval: 286 * time.Millisecond}, ""},
		{"2/1.5ms", 0, lock.Rate{Permits: 2, Interval: 2 * time.Millisecond}, ""},
		{"1000/1s", 1, lock.Rate{Permits: 1, Interval: time.Millisecond}, ""},
		{"10000000/24h", 0, lock.Rate{Permits: 10_000_000, Interval: 24 * time.Hour}, ""},
		{"1/8760h", 0, lock.Rate{Permits: 1, Interval: 8760 * time.Hour}, ""},

		{"0/1m", 0, lock.Rate{}, `bad rate "0/1m", want calls, a slash and a duration, as in 10/1m: at most 10,000,000 within 1ms to a year`},
		{"-1/1m", 0, lock.Rate{}, `bad rate "-1/1m"`},
		{"10/0s", 0, lock.Rate{}, "bad rate"},
		{"10/-1s", 0, lock.Rate{}, "bad rate"},
		{"10", 0, lock.Rate{}, "bad rate"},
		{"1m", 0, lock.Rate{}, "bad rate"},
		{"/", 0, lock.Rate{}, "bad rate"},
		{"10/", 0, lock.Rate{}, "bad rate"},
		{"/1m", 0, lock.Rate{}, "bad rate"},
		{"10 / 1m", 0, lock.Rate{}, "bad rate"},
		{"10/1m/1s", 0, lock.Rate{}, "bad rate"},
		{"10/60", 0, lock.Rate{}, "bad rate"},
		{"10/forever", 0, lock.Rate{}, "bad rate"},
		{"1.5/1m", 0, lock.Rate{}, "bad rate"},
		{"10/999us", 0, lock.Rate{}, "bad rate"},
		{"10000001/1m", 0, lock.Rate{}, "bad rate"},
		{"99999999999999999999/1m", 0, lock.Rate{}, "bad rate"},
		{"1/8761h", 0, lock.Rate{}, "bad rate"},
		{"10/1m", -1, lock.Rate{}, "negative burst -1"},
		{"10/1m", 10_000_001, lock.Rate{}, `burst=10000001: bad rate "10/1m"`},
		{"10000000/1h", 10_000_001, lock.Rate{}, `burst=10000001: bad rate "10000000/1h"`},
		{"10000/1s", 1, lock.Rate{}, `burst=1: bad rate "10000/1s"`},
		{"1/24h", 400, lock.Rate{}, "burst=400: bad rate"},
	} {
		l := newBounds()
		g, err := guard.New(l, guard.FromSpec(guard.Spec{Name: "call", Key: "user:#{req.User}", Rate: tt.rate, Burst: tt.burst}))
		if (err == nil) != (tt.fails == "") || err != nil && !strings.Contains(err.Error(), tt.fails) {
			t.Errorf("rate %s, burst %d: %v, want %q", tt.rate, tt.burst, err, tt.fails)
		}
		if err != nil || tt.fails != "" {
			continue
		}
		if _, err := guard.Must(guard.Func(g, called))(t.Context(), alice()); err != nil {
			t.Error(err)
		}
		if got, want := l.asked(), []lock.Request{{Key: "user:alice", Kind: lock.Permit, Rate: tt.want}}; !reflect.DeepEqual(got, want) {
			t.Errorf("rate %s, burst %d: asked for %+v, want %+v", tt.rate, tt.burst, got, want)
		}
	}
}

var twoLevels = []guard.Option{guard.Limit(1), guard.Level(20, "all"), guard.LevelFrom("#{req.Plan.Slots}", "tenant:{#{req.Tenant}}")}

// badBounds are what can't be declared, and what a programmer hears of each.
var badBounds = []struct {
	l    lock.Locker
	opts []guard.Option
	want []string
}{
	// What lacks something else, or goes with nothing.
	{nil, opts{guard.Level(20, "all")}, []string{"levels without limit"}},
	{nil, opts{guard.Level(20, "all"), guard.Rate(10, time.Minute)}, []string{"levels without limit"}},
	{nil, opts{guard.Burst(5)}, []string{"burst without rate"}},
	{nil, opts{guard.Limit(1), guard.Burst(5)}, []string{"burst without rate"}},
	{nil, opts{guard.Rate(10, time.Minute), guard.Burst(0)}, []string{"burst of 0"}},
	{nil, opts{guard.Rate(10, time.Minute), guard.Limit(0)}, []string{"limit of at least 1, not 0"}},
	{nil, opts{guard.Kind(lock.Permit)}, []string{"kind permit needs a limit of at least 1, not 0, or a rate"}},
	{nil, opts{guard.Rate(10, time.Minute), guard.HoldAtLeast(time.Second)}, []string{"rate without limit holds nothing: leave hold, lease and max-hold out"}},
	{nil, opts{guard.Rate(10, time.Minute), guard.Lease(time.Second)}, []string{"rate without limit holds nothing"}},
	{nil, opts{guard.Rate(10, time.Minute), guard.LeaseFrom("#{req.Slots}")}, []string{"rate without limit holds nothing"}},
	{nil, opts{guard.Rate(10, time.Minute), guard.MaxHold(time.Second)}, []string{"rate without limit holds nothing"}},
	{nil, opts{guard.Rate(10, time.Minute), guard.Fair()}, []string{"levels and a rate belong to kind permit, not to kind fair"}},
	{nil, opts{guard.Limit(1), guard.Level(20, "all"), guard.Write()}, []string{"levels and a rate belong to kind permit, not to kind write"}},
	{nil, opts{guard.Rate(10, time.Minute), guard.Busy(guard.Replace)}, []string{"busy=replace is for kinds that one call holds at a time, not for kind permit"}},
	{nil, opts{guard.Rate(10, time.Minute), guard.Rate(5, time.Minute)}, []string{`rate is given twice, as "10/1m" and as "5/1m"`}},
	{nil, opts{guard.Rate(0, time.Minute)}, []string{`bad rate "0/1m"`}},
	{nil, opts{guard.Rate(1, 0)}, []string{`bad rate "1/0s"`}},
	{nil, opts{guard.Rate(1, guard.Forever)}, []string{`bad rate "1/forever"`}},
	{nil, opts{guard.Limit(1), guard.Level(0, "all")}, []string{`bad level "0 of all"`}},
	{nil, opts{guard.Limit(1), guard.Level(1, "")}, []string{"bad level"}},
	{nil, opts{guard.Limit(1), guard.Level(1, "a,b")}, []string{`bad level "b"`, `a comma in a key as #{","}`}},
	{nil, opts{guard.Limit(1), guard.Level(1, "a"), guard.Level(1, "b"), guard.Level(1, "c")}, []string{`bad level " 1 of c", want one or two`}},

	// Keys and limits that do not fit the request.
	{nil, opts{guard.Limit(1), guard.Level(1, "user:#{req.User}")}, []string{"levels need keys of their own"}},
	{nil, opts{guard.Limit(1), guard.Level(1, "all"), guard.Level(2, "all")}, []string{"levels need keys of their own"}},
	{
		nil, opts{guard.Limit(1), guard.Level(1, "#{req.Tennant}")},
		[]string{"levels: keyexpr: unknown field Tennant of Call, did you mean Tenant? (at offset 6 "},
	},
	{nil, opts{guard.Limit(1), guard.Level(1, "t:#{req.Tags}")}, []string{`levels: "t:#{req.Tags}" makes several keys`}},
	{nil, opts{guard.Limit(1), guard.Level(1, "#{lower(req.Tags)}")}, []string{"levels: "}},
	{nil, opts{guard.Limit(1), guard.Level(1, "${req.Tenant}")}, []string{"levels: ", "write #{req.Tenant}"}},
	{nil, opts{guard.Limit(1), guard.Level(1, "all wait=2s")}, []string{"levels: wait= would be a part of the key"}},
	{nil, opts{guard.Limit(1), guard.LevelFrom("#{req.Plan.Slot}", "all")}, []string{"unknown field Slot", "did you mean Slots? (at offset 11 "}},
	{
		nil, opts{guard.Limit(1), guard.LevelFrom("#{req.User}", "all")},
		[]string{"levels: keyexpr: makes <string>, and should make one whole number from 1 to 10,000, out of the request"},
	},
	{nil, opts{guard.Limit(1), guard.LevelFrom("#{3}", "all")}, []string{"levels: keyexpr: makes <int>", "out of the request"}},
	{nil, opts{guard.Limit(1), guard.LevelFrom("#{req.Usr}", "#{req.Tennant}")}, []string{"unknown field Usr", "unknown field Tennant"}},

	// Several keys.
	{nil, opts{guard.Key("#{req.Tags}"), guard.Limit(1), guard.Level(20, "all")}, []string{`key: "#{req.Tags}" makes several keys: levels`}},
	{nil, opts{guard.Key("t:#{map(req.Tags, raw(#))}"), guard.Rate(1, time.Second)}, []string{"makes several keys"}},
	{
		nil, opts{guard.KeysFunc(func(c Call) ([]string, error) { return c.Tags, nil }), guard.Rate(1, time.Second)},
		[]string{"KeysFunc: levels and a rate are for one key"},
	},

	// Lockers without them.
	{memlockOf(), opts{guard.Limit(1), guard.Level(20, "all")}, []string{"levels and a rate: a struct { lock.Locker } has none, as"}},
	{memlockOf(), opts{guard.Rate(1, time.Second)}, []string{"has no method ServesLevels"}},
	{&bounds{unfit: errors.New("in two slots")}, twoLevels, []string{"in two slots"}},
}

// TestBoundsAtStart is what a programmer hears of levels and a rate that can't be.
func TestBoundsAtStart(t *testing.T) {
	for _, tt := range badBounds {
		if tt.l == nil {
			tt.l = newBounds()
		}
		all := append(opts{guard.Name("call")}, tt.opts...)
		if !strings.Contains(tt.want[0], "several") && !strings.Contains(tt.want[0], "KeysFunc") {
			all = append(all, guard.Key("user:#{req.User}"))
		}
		g, err := guard.New(tt.l, all...)
		if err == nil {
			_, err = guard.Func(g, called)
		}
		for _, want := range tt.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("error %v does not say %q", err, want)
			}
		}
		if err != nil {
			for line := range strings.Lines(err.Error()) {
				if !strings.HasPrefix(line, `guard "call": `) {
					t.Errorf("error %q has a line that does not name the guard", err)
				}
			}
		}
	}
}

// memlockOf is a locker without levels.
func memlockOf() lock.Locker { return struct{ lock.Locker }{memlock.New()} }

// The locker sees the templates of all keys at start, and not the text of another language or of a function.
func TestLockerSeesTemplates(t *testing.T) {
	all := "tenant:{#{req.Tenant}}"
	byUser := guard.KeyFunc(func(c Call) (string, error) { return c.User, nil })
	for _, tt := range []struct {
		opts []guard.Option
		want []string
	}{
		{append(opts{guard.Key("user:#{req.User}")}, twoLevels...), []string{"user:#{req.User}", "all", all}},
		{append(opts{byUser}, twoLevels...), []string{"all", all}},
		{append(opts{guard.KeyFrom(spel.Expression("#c.user", spel.Params("c")))}, twoLevels...), []string{"all", all}},
		{opts{guard.Key("user:#{req.User}"), guard.Rate(10, time.Minute)}, []string{"user:#{req.User}"}},
	} {
		l := newBounds()
		f := guard.Must(guard.Func(guard.Must(guard.New(l, append(tt.opts, guard.Name("call"))...)), called))
		for _, got := range l.templates {
			if !reflect.DeepEqual(got, tt.want) {
				t.Errorf("ServesLevels saw %q, want %q", got, tt.want)
			}
		}
		if len(l.templates) == 0 {
			t.Error("ServesLevels was not asked")
		}
		if _, err := f(t.Context(), alice()); err != nil {
			t.Error(err)
		}
		if r := l.asked()[0]; !strings.HasSuffix(r.Key, "alice") || len(r.Levels) != len(tt.want)-1 && len(r.Levels) != 2 {
			t.Errorf("asked for %+v", r)
		}
	}
}

// Each spelling asks for the same, and each call for what its request says.
func TestLevelsInAllSpellings(t *testing.T) {
	type tagged struct {
		_            struct{} `guard:"user:#{req.User}; limit=1; levels=20 of all, #{req.Slots} of tenant:{#{req.Tenant}}; rate=10/1m; burst=20; name=call"`
		User, Tenant string
		Slots        int
	}
	const text = "user:#{req.User}; limit=1; levels=20 of all, #{req.Plan.Slots} of tenant:{#{req.Tenant}}; rate=10/1m; burst=20"
	l := newBounds()
	want := []lock.Request{{
		Key: "user:alice", Kind: lock.Permit, Limit: 1, Levels: []lock.Level{{Key: "all", Limit: 20}, {Key: "tenant:{acme}", Limit: 3}},
		Rate: lock.Rate{Permits: 20, Interval: 2 * time.Minute},
	}}
	check := func(what string, err error) {
		t.Helper()
		if got := l.asked(); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, asked for %+v, want %+v", what, err, got, want)
		}
	}
	var fromText, fromJSON, fromYAML guard.Spec
	if err := fromText.UnmarshalText([]byte(text)); err != nil {
		t.Error(err)
	}
	object := `{"key": "user:#{req.User}", "limit": 1, "levels": "20 of all, #{req.Plan.Slots} of tenant:{#{req.Tenant}}", "rate": "10/1m", "burst": 20}`
	if err := json.Unmarshal([]byte(object), &fromJSON); err != nil {
		t.Error(err)
	}
	if err := fromYAML.UnmarshalYAML(func(to any) error {
		if m, ok := to.(*map[string]any); ok {
			return json.Unmarshal([]byte(object), m)
		}
		return errors.New("a map")
	}); err != nil {
		t.Error(err)
	}
	reg := newRegistry(t)
	for what, opts := range map[string][]guard.Option{
		"options":  append(opts{guard.Key("user:#{req.User}"), guard.Rate(10, time.Minute), guard.Burst(20)}, twoLevels...),
		"text":     {guard.FromSpec(fromText)},
		"JSON":     {guard.FromSpec(fromJSON)},
		"YAML":     {guard.FromSpec(fromYAML)},
		"override": {guard.In(reg), guard.FromSpec(guard.Spec{Key: "user:#{req.User}", Limit: 5, Levels: "7 of those", Rate: "3/1s"})},
	} {
		f := guard.Must(guard.Func(guard.Must(guard.New(l, append(opts, guard.Name("call"))...)), called))
		if what == "override" {
			_, err := f(t.Context(), alice())
			if got := l.asked(); err != nil || got[0].Limit != 5 || !reflect.DeepEqual(got[0].Levels, []lock.Level{{Key: "those", Limit: 7}}) {
				t.Errorf("before an override: %v, %+v", err, got)
			}
			specs, err := guard.ParseSpecs("call: limit=1; levels=20 of all, #{req.Plan.Slots} of tenant:{#{req.Tenant}}; rate=10/1m; burst=20")
			if err == nil {
				err = reg.Override(specs)
			}
			if err != nil {
				t.Error(err)
			}
		}
		_, err := f(t.Context(), alice())
		check(what, err)
	}
	f := guard.Must(guard.Action(guard.Must(guard.New(l)), func(context.Context, tagged) error { return nil }))
	check("tag", f(t.Context(), tagged{User: "alice", Tenant: "acme", Slots: 3}))
}

// An override with bounds that can't be is refused.
func TestOverrideWithBadBounds(t *testing.T) {
	reg := newRegistry(t)
	calling(t, newBounds(), guard.In(reg), guard.FromSpec(guard.Spec{Limit: 5, Levels: "7 of those", Rate: "3/1s"}))
	for text, want := range map[string]string{
		"call: levels=20 of #{req.Tennant}": "did you mean Tenant?", "call: levels=1 of user:#{req.User}": "keys of their own",
		"call: rate=10/1s; burst=400000000": "bad rate", "call: key=#{req.Tags}": "makes several keys", "call: hold=1s; levels=1 of a, 2 of a": "keys of their own",
	} {
		specs, err := guard.ParseSpecs(text)
		if err == nil {
			err = reg.Override(specs)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("override %s: %v, want %q", text, err, want)
		}
	}
}

// A level whose key or limit the request does not give is the request's fault, and named by its fact.
func TestRequestWithoutLevels(t *testing.T) {
	for _, tt := range []struct {
		limit, key string
		change     func(*Call)
		fact, want string
	}{
		{"20", "t:#{req.Tenant}", func(c *Call) { c.Tenant = "" }, "req.Tenant", "req.Tenant is empty"},
		{"#{req.Plan.Slots}", "all", func(c *Call) { c.Plan.Slots = 0 }, "req.Plan.Slots", "levels: keyexpr: unusable value: req.Plan.Slots is no whole"},
		{"#{req.Plan.Slots}", "all", func(c *Call) { c.Plan.Slots = 10_001 }, "req.Plan.Slots", "req.Plan.Slots is no whole number"},
		{"#{req.Slots}", "all", func(c *Call) { c.Slots = "many" }, "req.Slots", "req.Slots is no whole number"},
		{"#{req.Slots}", "all", func(c *Call) { c.Slots = nil }, "req.Slots", "levels: keyexpr: unusable value: req.Slots is nil"},
		{"20", "t:#{req.Slots}", func(c *Call) { c.Slots = []string{"a", "b"} }, "req.Slots", "req.Slots is a list"},
	} {
		l, c := newBounds(), alice()
		tt.change(&c)
		f := calling(t, l, guard.Limit(20_000), guard.LevelFrom(tt.limit, tt.key), guard.Busy(guard.RunUnlocked), guard.Outage(guard.RunUnlocked))
		_, err := f(t.Context(), c)
		e, ok := errors.AsType[*guard.Error](err)
		if !ok || e.Err != guard.ErrKey || e.Fact != tt.fact || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s of %s: %v (%+v), want ErrKey for %s, %q", tt.limit, tt.key, err, e, tt.fact, tt.want)
		}
		if got := l.asked(); len(got) > 0 {
			t.Errorf("%s of %s: asked for %+v", tt.limit, tt.key, got)
		}
	}
}

// Keys that a request makes equal, and several of them, are the declaration's fault: no policy applies, and the text has none of them.
func TestKeysThatAreNotOnesOwn(t *testing.T) {
	several := spel.Expression("#c.tags", spel.Params("c"))
	for _, tt := range []struct {
		opts []guard.Option
		c    Call
	}{
		{opts{guard.Key("#{req.User}"), guard.Limit(1), guard.Level(20, "all")}, Call{User: "all"}},
		{opts{guard.Key("user:#{req.User}"), guard.Limit(1), guard.Level(20, "all"), guard.Level(5, "#{req.Tenant}")}, Call{User: "a", Tenant: "all"}},
		{opts{guard.KeyFunc(func(c Call) (string, error) { return c.Tenant, nil }), guard.Limit(1), guard.Level(5, "#{req.Tenant}")}, Call{Tenant: "all"}},
		{opts{guard.KeyFrom(several), guard.Limit(1), guard.Level(20, "x")}, Call{Tags: []string{"all", "b"}}},
		{opts{guard.KeyFrom(several), guard.Rate(1, time.Second)}, Call{Tags: []string{"all", "b"}}},
	} {
		l, seen := newBounds(), new(events)
		g := guard.Must(guard.New(l, append(tt.opts, guard.Name("call"), guard.Observe(seen.add), guard.Busy(guard.RunUnlocked), guard.Outage(guard.RunUnlocked))...))
		_, err := guard.Must(guard.Func(g, called))(t.Context(), tt.c)
		if e, ok := errors.AsType[*guard.Error](err); !ok || e.Err != guard.ErrUnsupported || strings.Contains(err.Error(), `"all"`) {
			t.Errorf("%v: %v, want ErrUnsupported", g, err)
		}
		if e := seen.only(t); e.Outcome != guard.OutcomeUnsupported || len(l.asked()) > 0 {
			t.Errorf("%v: event %+v", g, e)
		}
	}
}

// TestRefusedByABound is what a call is told whose locker says which bound it has met.
func TestRefusedByABound(t *testing.T) {
	const second, ms = time.Second, time.Millisecond
	for _, tt := range []struct {
		busy  lock.BusyError
		opts  []guard.Option
		level string
		rate  bool
		after time.Duration // or -1
		text  string
	}{
		{lock.BusyError{Level: "all"}, twoLevels, "all", false, -1, `guard "call": level "all" is full: lock: `},
		{lock.BusyError{Level: "tenant:{acme}"}, twoLevels, "tenant:{#{req.Tenant}}", false, -1, `level "tenant:{#{req.Tenant}}" is full`},
		{lock.BusyError{Level: "user:alice"}, twoLevels, "user:#{req.User}", false, -1, `level "user:#{req.User}" is full`},
		{lock.BusyError{}, twoLevels, "", false, -1, `guard "call": lock: `},
		{lock.BusyError{Level: "user:alice"}, opts{guard.Rate(1, time.Second), guard.Limit(2)}, "", false, -1, `guard "call": lock: `},
		{lock.BusyError{Rate: true, Level: "user:alice", Remaining: second + 1}, opts{guard.Rate(1, time.Minute)}, "", true, second + ms, "rate used up"},
		{lock.BusyError{Rate: true, Remaining: 30 * time.Second}, append(opts{guard.Rate(1, time.Minute)}, twoLevels...), "", true, 30 * time.Second, "rate used up"},
		{lock.BusyError{Rate: true, Remaining: time.Hour}, opts{guard.Rate(1, time.Hour), guard.MaxRetryAfter(time.Minute)}, "", true, time.Minute, "rate used up"},
		{lock.BusyError{Rate: true, Remaining: -1}, opts{guard.Rate(1, time.Hour)}, "", true, 0, "rate used up"},
	} {
		l, seen := newBounds(), new(events)
		f := calling(t, l, append(tt.opts, guard.Observe(seen.add))...)
		for range 20 { // whose holds say nothing about a rate
			if _, err := f(t.Context(), alice()); err != nil {
				t.Fatal(err)
			}
		}
		l.busy, seen.all = fmt.Errorf("wrapped: %w", &tt.busy), nil
		if tt.text != "" {
			l.busy = &tt.busy
		}
		_, err := f(t.Context(), alice())
		e, ok := errors.AsType[*guard.Error](err)
		if !ok || e.Err != guard.ErrBusy || e.Level != tt.level || e.Rate != tt.rate || tt.after >= 0 && e.RetryAfter != tt.after ||
			!strings.Contains(err.Error(), tt.text) {
			t.Errorf("%+v: %v (%+v), want level %q, rate %t, after %v, %q", tt.busy, err, e, tt.level, tt.rate, tt.after, tt.text)
		}
		if strings.Contains(err.Error(), "alice") || strings.Contains(err.Error(), "acme") {
			t.Errorf("%v tells of the request", err)
		}
		if got := seen.only(t); got.Refused != error(e) || got.Outcome != guard.OutcomeBusy {
			t.Errorf("event %+v", got)
		}
	}
	for want, e := range map[string]*guard.Error{
		`guard "g": rate used up`:             {Guard: "g", Err: guard.ErrBusy, Rate: true},
		`guard "g": level "all" is full`:      {Guard: "g", Err: guard.ErrBusy, Level: "all"},
		`guard "g": lock held by others`:      {Guard: "g", Err: guard.ErrBusy},
		`guard "g": replaced by a newer call`: {Guard: "g", Err: guard.ErrReplaced},
	} {
		if e.Error() != want {
			t.Errorf("text %q, want %q", e, want)
		}
	}
}

// Work that was refused by a bound of its own, under a lock that is lost, says nothing about that of the guard.
func TestBoundOfNestedCall(t *testing.T) {
	for _, nested := range []*lock.BusyError{{Rate: true}, {Level: "all"}} {
		synctest.Test(t, func(t *testing.T) {
			g := guard.Must(guard.New(memlock.New(), append(opts{guard.Name("outer"), guard.Key("user:#{req.User}"), guard.MaxHold(time.Millisecond)}, twoLevels...)...))
			f := guard.Must(guard.Func(g, func(context.Context, Call) (string, error) {
				time.Sleep(2 * time.Millisecond)
				return "", nested
			}))
			_, err := f(t.Context(), alice())
			if e, ok := errors.AsType[*guard.Error](err); !ok || e.Err != guard.ErrLost || e.Rate || e.Level != "" {
				t.Errorf("%v: %+v", err, e)
			}
		})
	}
}

// Guards of a Stack are asked for together only if none of them has levels or a rate.
func TestBoundsAreAskedForAlone(t *testing.T) {
	for _, tt := range []struct {
		outer, inner []guard.Option
		together     bool
	}{
		{nil, nil, true},
		{opts{guard.Limit(1)}, opts{guard.Limit(2)}, true},
		{opts{guard.Rate(10, time.Minute)}, nil, false},
		{nil, opts{guard.Rate(10, time.Minute)}, false},
		{opts{guard.Limit(1), guard.Level(20, "all")}, nil, false},
		{nil, opts{guard.Limit(1), guard.Level(20, "all")}, false},
	} {
		l := newBounds()
		member := func(name, key string, opts []guard.Option) *guard.Guard {
			return guard.Must(guard.New(l, append(opts, guard.Name(name), guard.Key(key))...))
		}
		outer, inner := member("outer", "t:#{req.Tenant}", tt.outer), member("inner", "user:#{req.User}", tt.inner)
		f := guard.Must(guard.Func(guard.Must(guard.Stack(outer, inner)), called))
		if _, err := f(t.Context(), alice()); err != nil {
			t.Error(err)
		}
		got := l.asked()
		if len(got) != 2 || (l.reserved > 0) != tt.together {
			t.Errorf("%v and %v: %d reserved, asked for %+v", outer, inner, l.reserved, got)
		}
		for i, g := range []*guard.Guard{outer, inner} {
			if s := g.Spec(); (s.Rate != "") != (got[i].Rate != lock.Rate{}) || (s.Levels != "") != (got[i].Levels != nil) {
				t.Errorf("%v: asked for %+v", g, got[i])
			}
		}
	}
}

// In shadow mode, all keys are those of shadows, and the refusal is told as it would be.
func TestBoundsInShadow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, reg, seen := newBounds(), newRegistry(t), new(events)
		l.busy = &lock.BusyError{Level: "latchkey-shadow:tenant:{acme}"}
		g := guard.Must(guard.New(l, append(opts{guard.Name("call"), guard.Key("user:#{req.User}"), guard.In(reg), guard.Switchable(), guard.Observe(seen.add),
			guard.Rate(10, time.Minute)}, twoLevels...)...))
		f := guard.Must(guard.Func(g, func(context.Context, Call) (string, error) { time.Sleep(time.Second); return "", nil }))
		if err := reg.Switch("call", guard.Shadow); err != nil {
			t.Fatal(err)
		}
		if _, err := f(t.Context(), alice()); err != nil {
			t.Error(err)
		}
		want := []lock.Request{{
			Key: "latchkey-shadow:user:alice", Kind: lock.Permit, Limit: 1, Rate: lock.Rate{Permits: 10, Interval: time.Minute},
			Levels: []lock.Level{{Key: "latchkey-shadow:all", Limit: 20}, {Key: "latchkey-shadow:tenant:{acme}", Limit: 3}},
		}}
		if got := l.asked(); !reflect.DeepEqual(got, want) {
			t.Errorf("asked for %+v, want %+v", got, want)
		}
		if e, ok := errors.AsType[*guard.Error](seen.only(t).Refused); !ok || e.Level != "tenant:{#{req.Tenant}}" {
			t.Errorf("refused: %+v", e)
		}
	})
}

// Explain asks for what the call would, and says which bound is met.
func TestBoundsExplained(t *testing.T) {
	l := newBounds()
	g := guard.Must(guard.New(l, append(opts{guard.Name("call"), guard.Key("user:#{req.User}"), guard.Rate(10, time.Minute)}, twoLevels...)...))
	for _, tt := range []struct {
		busy error
		want string
	}{
		{nil, `key "user:alice", free now`},
		{&lock.BusyError{Rate: true, Remaining: 3 * time.Second}, `key "user:alice", rate used up (remaining 3s)`},
		{&lock.BusyError{Level: "tenant:{acme}"}, `key "user:alice", level "tenant:{#{req.Tenant}}" is full (remaining 0s)`},
		{&lock.BusyError{}, `key "user:alice", held by others`},
	} {
		l.busy = tt.busy
		e, err := g.Explain(t.Context(), map[string]any{"req": alice()})
		if err != nil {
			t.Fatal(err)
		}
		levels := []lock.Level{{Key: "all", Limit: 20}, {Key: "tenant:{acme}", Limit: 3}}
		got := l.asked()
		if len(got) != 1 || !reflect.DeepEqual(got[0].Levels, levels) || !reflect.DeepEqual(e.Levels, levels) || got[0].Rate.Permits != 10 {
			t.Errorf("asked for %+v, explained as %+v", got, e.Levels)
		}
		want := "level \"all\", limit 20\nlevel \"tenant:{acme}\", limit 3\n" + tt.want + "\n"
		if !strings.HasSuffix(e.String(), want) {
			t.Errorf("text %q, want %q at its end", e, want)
		}
	}
	text := `user:#{req.User}; name=call; kind=permit; limit=1; levels=20 of all, #{req.Plan.Slots} of tenant:{#{req.Tenant}}; rate=10/1m`
	if got := g.LogValue().String(); got != text || g.String() != text {
		t.Errorf("log value %q, want %q", got, text)
	}
}

// Waiters bounds who waits for the key of a guard with a rate, as for any other.
func TestWaitersOfARate(t *testing.T) {
	l := newBounds()
	l.busy = &lock.BusyError{Rate: true, Remaining: time.Second}
	f := calling(t, l, guard.Rate(10, time.Minute), guard.Waiters(1), guard.Wait(time.Second))
	if _, err := f(t.Context(), alice()); !errors.Is(err, guard.ErrBusy) {
		t.Errorf("%v, want ErrBusy", err)
	}
	if got := l.asked(); len(got) != 2 || got[0].Wait != 0 || got[1].Wait <= 0 {
		t.Errorf("asked for %+v, want it once without waiting, and then once more", got)
	}
}

// A leader has no bounds: several would lead, or one only once in a while.
func TestLeadRefusesBounds(t *testing.T) {
	for _, opts := range [][]guard.Option{{guard.Rate(1, time.Hour)}, {guard.Limit(1), guard.Level(1, "all")}} {
		g := guard.Must(guard.New(newBounds(), append(opts, guard.Name("leader"), guard.Key("leader"))...))
		err := guard.Lead(t.Context(), g, func(context.Context) error { return nil })
		if err == nil || !strings.Contains(err.Error(), "Lead with kind=permit") {
			t.Errorf("%v: %v", g, err)
		}
	}
}

// Options that follow FromSpec replace its levels, and add up among themselves.
func TestLevelOptionsAddUp(t *testing.T) {
	from := guard.FromSpec(guard.Spec{Limit: 1, Levels: "7 of those"})
	for want, opts := range map[string][]guard.Option{
		"7 of those":          {from},
		"1 of a":              {from, guard.Level(1, "a")},
		"1 of a, #{x} of b":   {from, guard.Level(1, "a"), guard.LevelFrom("#{x}", "b")},
		"1 of a, 2 of #{x.y}": {guard.Limit(3), guard.Level(1, "a"), guard.Level(2, "#{x.y}")},
	} {
		if got := guard.Must(guard.New(newBounds(), opts...)).Spec().Levels; got != want {
			t.Errorf("levels %q, want %q", got, want)
		}
	}
}
