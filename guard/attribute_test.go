package guard

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/lock"
)

// spellings is one value of each field of Spec in all spellings. The test below fails for a field that is missing here, and
// for one that lacks a spelling.
var spellings = map[string]struct {
	value  any
	option Option
	tag    string // behind "; "
	json   string // in braces
}{
	"Name":      {"pay", Name("pay"), "name=pay", `"name":"pay"`},
	"Key":       {"order:#{req.ID}", Key("order:#{req.ID}"), "key=order:#{req.ID}", `"key":"order:#{req.ID}"`},
	"When":      {"req.A == ';'", When("req.A == ';'"), "when=req.A == ';'", `"when":"req.A == ';'"`},
	"Kind":      {lock.Fair, Fair(), "kind=fair", `"kind":"fair"`},
	"Wait":      {Forever, Wait(Forever), "wait=forever", `"wait":"forever"`},
	"Lease":     {90 * time.Minute, Lease(90 * time.Minute), "lease=1h30m", `"lease":"1h30m"`},
	"LeaseFrom": {"#{req.A ?? ';'}", LeaseFrom("#{req.A ?? ';'}"), "lease=#{req.A ?? ';'}", `"lease":"#{req.A ?? ';'}"`},
	"MaxHold":   {time.Hour, MaxHold(time.Hour), "max-hold=1h", `"max-hold":"1h"`},
	"Hold":      {500 * time.Millisecond, HoldAtLeast(500 * time.Millisecond), "hold=500ms", `"hold":"500ms"`},
	"Limit":     {3, Limit(3), "limit=3", `"limit":3`},
	"LimitFrom": {`#{slots["}"]}`, LimitFrom(`#{slots["}"]}`), `limit=#{slots["}"]}`, `"limit":"#{slots[\"}\"]}"`},
	"Levels": {"20 of all, #{req.A ?? ','} of t", optionFunc(func(c *config) {
		Level(20, "all").apply(c)
		LevelFrom("#{req.A ?? ','}", "t").apply(c)
	}), "levels=20 of all, #{req.A ?? ','} of t", `"levels":"20 of all, #{req.A ?? ','} of t"`},
	"Rate":       {"10/1m", Rate(10, time.Minute), "rate=10/1m", `"rate":"10/1m"`},
	"Burst":      {20, Burst(20), "burst=20", `"burst":20`},
	"Waiters":    {1, Waiters(1), "waiters=1", `"waiters":1`},
	"Busy":       {Replace, Busy(Replace), "busy=replace", `"busy":"replace"`},
	"Outage":     {RunUnlocked, Outage(RunUnlocked), "outage=run-unlocked", `"outage":"run-unlocked"`},
	"Args":       {"from,to", Args("from", "to"), "args=from,to", `"args":"from,to"`},
	"Methods":    {"POST,PUT", Methods("POST", "PUT"), "methods=POST,PUT", `"methods":"POST,PUT"`},
	"OneKey":     {true, OneKey(), "one-key", `"one-key":true`},
	"Switchable": {true, Switchable(), "switchable", `"switchable":true`},
}

func TestEachFieldHasAllSpellings(t *testing.T) {
	seen := fields(0)
	from := func(field string) bool { return field == "LimitFrom" || field == "LeaseFrom" } // are another spelling of Limit and Lease
	for f := range reflect.TypeFor[Spec]().Fields() {
		if !f.IsExported() {
			continue
		}
		tt, ok := spellings[f.Name]
		if !ok {
			t.Errorf("field %s has no spellings", f.Name)
			continue
		}
		var want Spec
		reflect.ValueOf(&want).Elem().FieldByIndex(f.Index).Set(reflect.ValueOf(tt.value))
		given := want.given()
		if given == 0 || given&(given-1) != 0 || (seen&given != 0) != from(f.Name) {
			t.Errorf("field %s is in the table as %b, want one bit of its own, or of the value that it stands for", f.Name, given)
		}
		seen |= given

		limit := strings.HasPrefix(f.Name, "Limit") || f.Name == "Levels" || f.Name == "Rate"
		if want.imply(); limit && want.Kind != lock.Permit {
			t.Errorf("%s implies kind %v", f.Name, want.Kind)
		}
		var c config
		tt.option.apply(&c)
		if c.spec.imply(); c.spec != want || len(c.faults) > 0 {
			t.Errorf("option for %s = %+v, %v, want %+v", f.Name, c.spec, c.faults, want)
		}
		if got, err := parseTag("; " + tt.tag); got != want || err != nil {
			t.Errorf("parseTag(%q) = %+v, %v, want %+v", tt.tag, got, err, want)
		}
		if limit { // is printed with its kind
			tt.tag, tt.json = "kind=permit; "+tt.tag, `"kind":"permit",`+tt.json
		}
		if got := want.String(); got != "; "+tt.tag && got != strings.TrimPrefix(tt.tag, "key=") {
			t.Errorf("String() of %s = %q, want %q", f.Name, got, tt.tag)
		}
		if got, err := json.Marshal(want); string(got) != "{"+tt.json+"}" || err != nil {
			t.Errorf("JSON of %s = %s, %v, want {%s}", f.Name, got, err, tt.json)
		}
		checkRoundTrip(t, want)
	}
	if len(spellings) != len(attributes)+2 {
		t.Errorf("%d rows for %d fields", len(attributes), len(spellings))
	}
}

// TestPackageCommentListsTheAttributes holds that the table in doc.go has a line for each attribute.
func TestPackageCommentListsTheAttributes(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range attributes {
		if !strings.Contains(string(doc), "\n//\t"+a.name+" ") {
			t.Errorf("doc.go has no line for %s", a.name)
		}
	}
}

// checkRoundTrip fails t if s does not come back from each of its texts.
func checkRoundTrip(t *testing.T, s Spec) {
	t.Helper()
	var fromText, fromJSON, fromString Spec
	text, err := s.MarshalText()
	if err == nil {
		err = fromText.UnmarshalText(text)
	}
	if fromText != s || err != nil {
		t.Errorf("%+v comes back from text %q as %+v, %v", s, text, fromText, err)
	}
	object, err := json.Marshal(s)
	if err == nil {
		err = json.Unmarshal(object, &fromJSON)
	}
	if fromJSON != s || err != nil {
		t.Errorf("%+v comes back from JSON %s as %+v, %v", s, object, fromJSON, err)
	}
	quoted, err := json.Marshal(s.String())
	if err == nil {
		err = json.Unmarshal(quoted, &fromString)
	}
	if fromString != s || err != nil {
		t.Errorf("%+v comes back from a JSON string %s as %+v, %v", s, quoted, fromString, err)
	}
}

func TestTextOfWholeSpecs(t *testing.T) {
	tests := []struct {
		spec Spec
		text string
	}{
		{Spec{}, ""},
		{Spec{Key: "order:#{req.ID}", Wait: 2 * time.Second, Kind: lock.Fair}, "order:#{req.ID}; kind=fair; wait=2s"},
		{Spec{Key: "a#{x ?? ';'}", Busy: Skip, OneKey: true}, "a#{x ?? ';'}; busy=skip; one-key"},
		{Spec{Wait: time.Second, zeros: fieldBusy}, "; wait=1s; busy=fail"},
		// What would be read back as something else stands in quotes.
		{Spec{Key: "a;b"}, `; key="a;b"`},
		{Spec{Key: " a"}, `; key=" a"`},
		{Spec{Key: "a wait=2s"}, "; key=a wait=2s"},
		{Spec{Key: "it's", Name: "it's"}, "it's; name=it's"},
		{Spec{Name: "a;b"}, `; name="a;b"`},
		{Spec{Name: `"a"`}, `; name="\"a\""`},
		{Spec{When: `a == ";"`}, `; when=a == ";"`},
		{Spec{When: "a;b"}, `; when="a;b"`},
		{Spec{Wait: time.Hour + time.Second}, "; wait=1h0m1s"},
		{Spec{Wait: time.Minute}, "; wait=1m"},
		{Spec{LeaseFrom: "#{a || b}"}, `; lease="#{a || b}"`},
		{Spec{Kind: lock.Permit, LimitFrom: `#{f("}; limit=3")}`, Busy: Skip}, `; kind=permit; limit=#{f("}; limit=3")}; busy=skip`},
	}
	for _, tt := range tests {
		if got := tt.spec.String(); got != tt.text {
			t.Errorf("String() = %q, want %q", got, tt.text)
		}
		checkRoundTrip(t, tt.spec)
	}
}

func TestSpecWithoutText(t *testing.T) {
	for _, s := range []Spec{{Kind: 9}, {Busy: 9}, {Wait: -1}, {Lease: Forever}, {Args: "a b"}, {Methods: "post"}, {Limit: -1}, {LimitFrom: "3"}, {LimitFrom: "#{a}", Limit: 3},
		{LeaseFrom: "#{a"}, {LeaseFrom: " #{a}"}, {LeaseFrom: "#{a}", Lease: time.Second}} {
		if text, err := s.MarshalText(); err == nil {
			t.Errorf("%+v has the text %q", s, text)
		}
		if text, err := s.MarshalJSON(); err == nil {
			t.Errorf("%+v has the JSON %s", s, text)
		}
	}
}

func TestSpecJSONErrors(t *testing.T) {
	tests := []struct{ json, want string }{
		{`{"wiat":"2s"}`, `unknown attribute "wiat", did you mean wait? (line 1, column 8)`},
		{"{\n  \"wait\": \"2\"}", `wait: bad duration "2", want one like 2s or 500ms (line 2, column 14)`},
		{`{"wait":2}`, "wait: a number without a unit or quotes: 2"},
		{`{"wait":""}`, "wait: want a text in quotes"},
		{`{"wait":null}`, "wait: want a text in quotes"},
		{`{"wait":{"s":2}}`, "wait: want a text in quotes"},
		{`{"one-key":"yes"}`, "one-key: want true"},
		{`{"one-key":false}`, "one-key: want true"},
		{`{"limit":1.5}`, `limit: bad limit "1.5"`},
		{`{"limit":["#{req.A}"]}`, "limit: want a text in quotes"},
		{`{"wait":"#{req.A}"}`, `wait: bad duration "#{req.A}"`},
		{`{"waiters":"#{req.A}"}`, `waiters: bad number of waiters "#{req.A}"`},
		{`{"busy":"skipp"}`, "did you mean skip?"},
		{`{"wait":"1s","wait":"2s"}`, `"wait" is given twice`},
		{`7`, "want an object of attributes"},
		{`["a"]`, "want an object of attributes"},
		{`"k; wiat=2s"`, `did you mean wait?`},
	}
	for _, tt := range tests {
		s := Spec{Name: "kept"}
		err := json.Unmarshal([]byte(tt.json), &s)
		if err == nil || !strings.Contains(err.Error(), tt.want) || s != (Spec{Name: "kept"}) {
			t.Errorf("Unmarshal(%s): %+v, %v, want %s", tt.json, s, err, tt.want)
		}
	}
	for text, want := range map[string]string{`{"wait":"1s"} x`: "behind the end", `{"wait":`: "end of JSON", `{"wait" 1}`: "line 1"} {
		if err := new(Spec).UnmarshalJSON([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("UnmarshalJSON(%s): %v, want %s", text, err, want)
		}
	}
}

// FuzzSpecText holds that each Spec comes back from its texts.
func FuzzSpecText(f *testing.F) {
	f.Add("order:#{req.ID}", "pay", "a == ';'", int64(time.Second), uint8(3))
	f.Add(` ;"`, `"\`, `a|b; "`, int64(1500), uint8(255))
	f.Add("a, wait", "#{", "(", int64(Forever), uint8(0))
	f.Add("k", "n", "#{req.A ?? ';|'}", int64(0), uint8(0))
	f.Fuzz(func(t *testing.T, key, name, when string, d int64, bits uint8) {
		s := Spec{
			Key: strings.ToValidUTF8(key, ""), Name: strings.ToValidUTF8(name, ""), When: strings.ToValidUTF8(when, ""),
			Wait: time.Duration(d), Lease: time.Duration(d / 2), OneKey: bits&1 != 0, Kind: lock.Kind(bits >> 1 & 3),
			Busy: Policy(bits >> 3 & 3), Limit: int(bits >> 5 & 1), zeros: 0,
		}
		if bits>>6&1 != 0 {
			s.Limit, s.LimitFrom = 0, s.When
		}
		if bits>>7&1 != 0 {
			s.Lease, s.LeaseFrom = 0, s.When
		}
		if s.imply(); s.printable() != nil {
			return
		}
		checkRoundTrip(t, s)
	})
}

// specTexts are what random Specs are made of, with what ends an attribute, a hole or a text where it stands bare.
var specTexts = []string{
	"req.A", `f("}")`, `x ?? ';'`, "a || b", `y["| "]`, "any(x, {.A; .B})", `'"' == z`, "q.Größe", `"\\"`, "a\n+ b", "#", "m.kind == 'skip' ? 1 : 2",
}

// randomSpec has each of its fields with a chance of a half, with a value that has a text.
func randomSpec(dice *rand.Rand) (s Spec) {
	text := func() string { return specTexts[dice.IntN(len(specTexts))] }
	levels := func() string {
		all := []string{"20 of all", "#{" + text() + "} of t:{#{" + text() + "}}", " 3  of it's #{" + text() + `};"`, `#{","}`, "1 of a#{','}b", "7 of " + text(), "2\tof\nx", "x"}
		one, two := all[dice.IntN(len(all))], all[dice.IntN(len(all))]
		return []string{one, two, one + ", " + two, one + "," + two}[dice.IntN(4)]
	}
	d := func() time.Duration { return time.Duration(1+dice.IntN(9_000_000)) * time.Millisecond }
	for _, set := range []func(){
		func() { s.Name = strings.TrimSpace(text()) }, func() { s.Key = "k:#{" + text() + "}" }, func() { s.When = text() },
		func() { s.Kind = lock.Kind(dice.IntN(7)) }, func() { s.Wait = []time.Duration{Forever, d()}[dice.IntN(2)] },
		func() { s.Lease = d() }, func() { s.Lease, s.LeaseFrom = 0, "#{"+text()+"}" }, func() { s.MaxHold = d() }, func() { s.Hold = d() },
		func() { s.Limit = 1 + dice.IntN(20_000) }, func() { s.Limit, s.LimitFrom = 0, "#{ "+text()+" }" }, func() { s.Waiters = 1 + dice.IntN(9) },
		func() { s.Levels = levels() }, func() { s.Rate = []string{"10/1m", "1/1.5s", "10000000/8760h"}[dice.IntN(3)] }, func() { s.Burst = 1 + dice.IntN(99) },
		func() { s.Busy = Policy(dice.IntN(5)) }, func() { s.Outage = Policy(dice.IntN(5)) }, func() { s.Args = "a,b" },
		func() { s.Methods = "POST,PUT" }, func() { s.OneKey = true }, func() { s.Switchable = true },
	} {
		if dice.IntN(2) == 0 {
			set()
		}
	}
	s.imply()
	return s
}

// A Spec comes back from all of its texts: those of tags, JSON and YAML, that of many guards, and as single attributes.
func TestRandomSpecsComeBack(t *testing.T) {
	dice, expressions, levels := rand.New(rand.NewPCG(11, 7)), 0, 0
	for range 500 {
		s := randomSpec(dice)
		if s.printable() != nil {
			continue
		}
		if s.LimitFrom != "" && s.LeaseFrom != "" {
			expressions++
		}
		if len(s.keys()) == 3 {
			levels++
		}
		checkRoundTrip(t, s)
		var one Spec
		for _, a := range attributes {
			if a.zero(&s) {
				continue
			}
			if err := one.Set(a.name, a.format(&s)); err != nil {
				t.Errorf("%s of %v: %v", a.name, s, err)
			}
		}
		if one != s {
			t.Errorf("%+v, set one by one, is %+v", s, one)
		}
		object, err := s.MarshalJSON()
		if err != nil {
			t.Errorf("%v: %v", s, err)
		}
		var fromYAML Spec
		err = fromYAML.UnmarshalYAML(func(to any) error {
			m, ok := to.(*map[string]any)
			if !ok {
				return errors.New("no text")
			}
			return json.Unmarshal(object, m)
		})
		if fromYAML != s || err != nil {
			t.Errorf("%+v comes back from YAML %s as %+v, %v", s, object, fromYAML, err)
		}
		checkOverrideComesBack(t, s)
	}
	if expressions < 10 || levels < 10 {
		t.Errorf("%d Specs with a limit and a lease from requests, and %d with two levels: that is too few", expressions, levels)
	}
}

// checkOverrideComesBack fails t if s does not come back from ParseSpecs as text and as JSON, beside another guard, if it can be there.
func checkOverrideComesBack(t *testing.T, s Spec) {
	t.Helper()
	s.Name, s.Args = "", ""
	if s.checkOverride() != nil {
		return
	}
	object, err := json.Marshal(map[string]Spec{"a": s, "b": {Wait: time.Second}})
	if err != nil {
		t.Error(err)
	}
	key := s
	text := strings.TrimPrefix(key.String(), "; ")
	if key.Key != "" && plainKey(key.Key) {
		key.Key = ""
		text = "key=" + strconv.Quote(s.Key) + key.String()
	}
	for _, text := range []string{string(object), "a: " + text + " | b: wait=1s", "a: " + text + "\nb: wait=1s"} {
		if got, err := ParseSpecs(text); err != nil || got["a"] != s || got["b"] != (Spec{Wait: time.Second}) {
			t.Errorf("%+v comes back from %s as %+v, %v", s, text, got, err)
		}
	}
}
