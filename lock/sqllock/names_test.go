package sqllock

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestNamesOfKeys(t *testing.T) {
	digested := nameOf(strings.Repeat("k", 65), 64)
	for _, tt := range []struct {
		key   string
		limit int
		plain bool
	}{
		// as they are
		{"job", 64, true}, {"A", 64, true}, {"a", 64, true}, {" a", 64, true}, {"größe/鍵🔑", 64, true}, {"a~b", 64, true},
		{strings.Repeat("é", 64), 64, true}, {strings.Repeat("é", 200), 255, true}, {"\n\t\x01", 64, true},
		// with a digest
		{strings.Repeat("é", 65), 64, false}, {"a ", 64, false}, {" ", 64, false}, {"a\x00b", 64, false}, {"\xff\xfe", 64, false},
		{digested, 64, false}, {strings.Repeat("k", 10_000), 255, false},
	} {
		name := nameOf(tt.key, tt.limit)
		switch {
		case (name == tt.key) != tt.plain:
			t.Errorf("nameOf(%.40q, %d) = %q", tt.key, tt.limit, name)
		case !utf8.ValidString(name), utf8.RuneCountInString(name) > tt.limit, strings.ContainsRune(name, 0), strings.HasSuffix(name, " "):
			t.Errorf("nameOf(%.40q, %d) = %q, which not every database takes", tt.key, tt.limit, name)
		case !tt.plain && !looksDigested(name):
			t.Errorf("nameOf(%.40q, %d) = %q has no digest", tt.key, tt.limit, name)
		}
	}
	// This is what other programs have in the table, so it must not change.
	const golden = "kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk~"
	if !strings.HasPrefix(digested, golden) || len(digested) != 64 {
		t.Errorf("nameOf(65 k) = %q", digested)
	}
}

func FuzzDifferentKeysHaveDifferentNames(f *testing.F) {
	f.Add("a", "a ")
	f.Add("a\x00", "a_")
	f.Add("\xff", "\xfe")
	f.Add(nameOf(" ", 64), " ")
	f.Fuzz(func(t *testing.T, a, b string) {
		if a != b && nameOf(a, 64) == nameOf(b, 64) {
			t.Errorf("%q and %q have the name %q", a, b, nameOf(a, 64))
		}
		if name := nameOf(a, 64); utf8.RuneCountInString(name) > 64 || !utf8.ValidString(name) {
			t.Errorf("nameOf(%q) = %q", a, name)
		}
	})
}
