package keyexpr

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"order:#{req.OrderID}", "##{a}", "{#a}", "#{", "#{}", "#{'}'}", "#{`}``", "#{a /* }", "#{(}", "é#{path.id}\xff",
		"#{1..1000000000}", "#{let a = method + method; a + a}", "#{req.OrdreID}", "#{header?.A?.b[0] ?? 'x'}", "#{map(req.Lines, .SKU)}",
		"#{$env}", "#{now()}", "#{1 < int(method) < 2}", "#{true ?: false}", "#{-9223372036854775808 % -1}", "#{b'\\xff'}", "#{{}}", "#{[]}",
	} {
		f.Add(seed)
	}
	roots, facts := testRoots(), testFacts(nil)
	f.Fuzz(func(t *testing.T, text string) {
		tmpl, err := Parse(text, roots)
		if err != nil {
			checkError(t, text, err)
			return
		}
		if err := Check(text); err != nil {
			t.Errorf("Check(%q) = %v, and Parse finds nothing", text, err)
		}
		keys, err := tmpl.Expand(t.Context(), facts)
		if (err == nil) == (len(keys) == 0) || slices.Contains(keys, "") {
			t.Errorf("Expand(%q) = %q, %v", text, keys, err)
		}
		for _, key := range keys {
			if len(key) > maxKey {
				t.Errorf("Expand(%q) makes a key of %d bytes", text, len(key))
			}
		}
	})
}

func checkError(t *testing.T, text string, err error) {
	t.Helper()
	fault, ok := errors.AsType[*Error](err)
	if !ok || fault.Offset < 0 || fault.Offset > len(text) || fault.Reason == "" || strings.Contains(err.Error(), "\n") {
		t.Errorf("Parse(%q) = %#v", text, err)
	}
}

// FuzzRender reads keys back: what can be decoded can't be another request's key.
func FuzzRender(f *testing.F) {
	for _, seed := range []string{"42", "", "a:b", "%", "%3A", "{a}", "}{", "\x00", "\r\n", "\xff\xfe", "é→", "→", "\u00a0", "9", "-", strings.Repeat("long", 200)} {
		f.Add(seed, "x", int64(-7))
		f.Add("x", seed, int64(0))
	}
	var templates []*Template
	for _, text := range []string{
		"order:#{req.OrderID}:#{req.Tenant}", "#{req.OrderID}→#{req.Tenant}→", "o{#{req.OrderID}}#{req.Tenant}",
		"#{req.Seq}-#{req.OrderID}2%#{req.Tenant}", "#{req.Seq}1#{lower('X' + req.OrderID)} #{req.Tenant + 'x'}",
	} {
		templates = append(templates, mustParse(f, text))
	}
	f.Fuzz(func(t *testing.T, id, name string, seq int64) {
		for _, tmpl := range templates {
			req := &payRequest{OrderID: id, Tenant: tenant(name), Seq: seq}
			keys, err := tmpl.Expand(t.Context(), testFacts(req))
			if err != nil {
				if !errors.Is(err, ErrValue) {
					t.Errorf("Expand(%q) = %v, want ErrValue", tmpl, err)
				}
				continue
			}
			if strings.Contains(keys[0], digestMark) && len(keys[0]) > maxKey-4 {
				continue
			}
			got, err := decode(tmpl, keys[0])
			if want := holeTexts(t, tmpl, req); err != nil || !slices.Equal(got, want) {
				t.Errorf("%q of %q decodes to %q, %v, want %q", keys[0], tmpl, got, err, want)
			}
		}
	})
}

// holeTexts is what the holes of a template stand for, without escapes.
func holeTexts(t *testing.T, tmpl *Template, req *payRequest) (texts []string) {
	for _, p := range tmpl.parts {
		if p.hole == nil {
			continue
		}
		st := newState(t.Context(), testFacts(req), tmpl.used)
		v, err := p.hole.result(st)
		if err != nil {
			t.Fatal(err)
		}
		text, err := textOf(reflect.ValueOf(v))
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, text)
		st.release()
	}
	return texts
}
