package guard_test

import (
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/lock"
)

func TestParseSpecs(t *testing.T) {
	pay := guard.Spec{Wait: 5 * time.Second, Busy: guard.Skip}
	report := guard.Spec{Limit: 3, Kind: lock.Permit}
	tests := []struct {
		text string
		want map[string]guard.Spec
	}{
		{"", nil},
		{" \n\n", nil},
		{"{}", nil},
		{"order.pay: wait=5s; busy=skip | report: limit=3", map[string]guard.Spec{"order.pay": pay, "report": report}},
		{"# who waits\norder.pay: wait=5s; busy=skip\r\n\n  # limits\n\treport:limit=3\n#", map[string]guard.Spec{"order.pay": pay, "report": report}},
		{`{"order.pay":{"wait":"5s","busy":"skip"},"report":"limit=3"}`, map[string]guard.Spec{"order.pay": pay, "report": report}},
		{`"a:b" : one-key |`, map[string]guard.Spec{"a:b": {OneKey: true}}},
		{"a: key=order:#{req.A ?? '|;'}; when=req.A || req.B | b: when=(req.A | any(#))", map[string]guard.Spec{
			"a": {Key: "order:#{req.A ?? '|;'}", When: "req.A || req.B"}, "b": {When: "(req.A | any(#))"},
		}},
		{`a: key="n # #{req.A}" | b: key=#{filter(req.IDs, # > 5)}#x | c: key=#1:#{req.A}`, map[string]guard.Spec{
			"a": {Key: "n # #{req.A}"}, "b": {Key: "#{filter(req.IDs, # > 5)}#x"}, "c": {Key: "#1:#{req.A}"},
		}},
		{`a: key="x|y;z#{req}"; one-key|`, map[string]guard.Spec{"a": {Key: "x|y;z#{req}", OneKey: true}}},
	}
	for _, tt := range tests {
		got, err := guard.ParseSpecs(tt.text)
		if err != nil || !maps.Equal(got, tt.want) {
			t.Errorf("ParseSpecs(%q) = %v, %v, want %v", tt.text, got, err, tt.want)
		}
	}
}

// TestParseSpecsOfZeros holds that a zero which is written out overrides, and one which is not does not.
func TestParseSpecsOfZeros(t *testing.T) {
	for _, text := range []string{"a: wait=0; busy=fail", `{"a":{"wait":"0s","busy":"fail"}}`} {
		specs, err := guard.ParseSpecs(text)
		if err != nil {
			t.Fatal(err)
		}
		l, seen := newSpy(), new(events)
		l.refuse = map[string]error{"order:7": lock.ErrBusy}
		f := guard.Must(guard.Func(guard.Must(guard.New(l, guard.Name("a"), guard.Key("order:#{req.ID}"), guard.Wait(time.Second),
			guard.Lease(time.Minute), guard.Busy(guard.Skip), guard.FromSpec(specs["a"]), guard.Observe(seen.add))), settled))
		if _, err := f(t.Context(), Order{ID: "7"}); !errors.Is(err, guard.ErrBusy) {
			t.Errorf("%s: busy = %v, want ErrBusy", text, err)
		}
		if got, want := l.requests[0], (lock.Request{Key: "order:7", Lease: time.Minute}); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: asks for %+v, want %+v", text, got, want)
		}
	}
}

func TestParseSpecsErrors(t *testing.T) {
	tests := []struct{ text, want string }{
		{"order.pay", `"order.pay": want the name of a guard and a colon, as in order.pay: wait=5s (line 1, column 1)`},
		{"order.pay=1", "want the name of a guard"},
		{": wait=5s", "want the name of a guard"},
		{"wait=5s; a: limit=1", `"wait=5s": want the name of a guard`},
		{"a: wait=5s\nb: wiat=5s", `guard "b": unknown attribute "wiat", did you mean wait? (line 2, column 4)`},
		{"a: wait=5s | b: wait=5", `guard "b": bad duration "5", want one like 2s or 500ms (line 1, column 22)`},
		{"a:", `guard "a": nothing between semicolons`},
		{"a: | b: wait=5s", `guard "a": nothing between semicolons`},
		{"a: wait=5s;", `guard "a": nothing between semicolons`},
		{"a: wait=5s\na: wait=6s", `guard "a": is given twice (line 2, column 1)`},
		{"a: name=b", `guard "a": name can't be overridden`},
		{"a: args=from", `guard "a": args can't be overridden`},
		{"a: order:#{req.ID}", "unknown attribute"},
		{"a: wait=1us", "wait 1µs is under 1ms"},
		{"a: lease=2m; max-hold=1m", "lease 2m0s is over max-hold 1m0s"},
		{"a: key=order:#{req", "key: "},
		{"a: when=req.A ||", "when: "},
		{"a: key=order:#{req.ID} # per order", `guard "a": a comment would be a part of the key: it stands on a line of its own, and a key with a # like this in quotes (line 1, column 24)`},
		{`{"a":{"wiat":"5s"}}`, `guard "a": unknown attribute "wiat", did you mean wait? (line 1, column 13)`},
		{"{\"a\":{\n\"wait\":5}}", `guard "a": wait: a number without a unit or quotes: 5 (line 2, column 9)`},
		{`{"a":{"wait":"5s"},"a":{"wait":"6s"}}`, `"a" is given twice (line 1, column 23)`},
		{`{"a":{}}`, `guard "a": no attributes`},
		{`{"a":""}`, `guard "a": tag "": nothing between semicolons`},
		{`{"a":"order:#{req.ID}"}`, "unknown attribute"},
		{`{"a":{"name":"b"}}`, "name can't be overridden"},
		{`{"a":7}`, "want an object of attributes"},
		{`{"a":`, "unexpected end of JSON"},
		{`{"a":{"wait":"5s"}`, "unexpected end of JSON"},
		{`{"a":{"wait":"5s"}} {}`, "text behind the end of the JSON value"},
	}
	for _, tt := range tests {
		got, err := guard.ParseSpecs(tt.text)
		if got != nil || err == nil || !strings.Contains(err.Error(), tt.want) || !strings.HasPrefix(err.Error(), "guard: specs: ") {
			t.Errorf("ParseSpecs(%q) = %v, %v, want %s", tt.text, got, err, tt.want)
		}
	}
}

func FuzzParseSpecs(f *testing.F) {
	f.Add("order.pay: wait=5s; busy=skip | report: limit=3\n# x")
	f.Add(`{"order.pay":{"wait":"5s","busy":"skip"},"report":"limit=3"}`)
	f.Add(`"a:b": when=a||b;key="`)
	f.Fuzz(func(t *testing.T, text string) {
		specs, err := guard.ParseSpecs(text)
		if err != nil && specs != nil || err != nil && err.Error() == "" {
			t.Errorf("ParseSpecs(%q) = %v, %v", text, specs, err)
		}
		for name, s := range specs {
			if s == (guard.Spec{}) || s.Name != "" {
				t.Errorf("ParseSpecs(%q) has %q: %+v", text, name, s)
			}
		}
	})
}

// TestSpecYAML decodes as packages of YAML do, with JSON in place of YAML.
func TestSpecYAML(t *testing.T) {
	decoder := func(text string) func(any) error {
		return func(v any) error { return json.Unmarshal([]byte(text), v) }
	}
	want := guard.Spec{Key: "order:#{req.ID}", Wait: guard.Forever, MaxHold: time.Minute, Limit: 3, Kind: lock.Permit, OneKey: true}
	for _, text := range []string{
		`{"key":"order:#{req.ID}","wait":"forever","max-hold":"1m","limit":3,"one-key":true}`,
		`"order:#{req.ID}; wait=forever; max-hold=1m; limit=3; one-key"`,
	} {
		var s guard.Spec
		if err := s.UnmarshalYAML(decoder(text)); err != nil || s != want {
			t.Errorf("UnmarshalYAML(%s): %+v, %v", text, s, err)
		}
	}
	for text, want := range map[string]string{`{"maxhold":"1m"}`: "did you mean max-hold?", `["a"]`: "want a map of attributes", `{"wait":2}`: "without a unit"} {
		if err := new(guard.Spec).UnmarshalYAML(decoder(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("UnmarshalYAML(%s): %v, want %s", text, err, want)
		}
	}
}
