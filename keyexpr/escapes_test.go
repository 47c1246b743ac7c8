package keyexpr

import (
	"testing"
)

// What is escaped depends on the value and on the literal behind the hole, and on nothing else. Each row is a value, and what
// it becomes at the end of a key, in front of a colon, a slash, a dash, an arrow and a brace.
func TestEscapes(t *testing.T) {
	suffixes := []string{"", ":", "/", "-", "→", "}"}
	for _, tt := range []struct {
		value string
		want  [6]string
	}{
		// Ordinary ids come out as they are.
		{"42", [6]string{"42", "42", "42", "42", "42", "42"}},
		{"acme_Corp.x~1", [6]string{"acme_Corp.x~1", "acme_Corp.x~1", "acme_Corp.x~1", "acme_Corp.x~1", "acme_Corp.x~1", "acme_Corp.x~1"}},
		{"!$&*()+;=@", [6]string{"!$&*()+;=@", "!$&*()+;=@", "!$&*()+;=@", "!$&*()+;=@", "!$&*()+;=@", "!$&*()+;=@"}},
		// What follows is escaped, and only that.
		{"a:b", [6]string{"a:b", "a%3Ab", "a:b", "a:b", "a:b", "a:b"}},
		{"a/b", [6]string{"a/b", "a/b", "a%2Fb", "a/b", "a/b", "a/b"}},
		{"a-b", [6]string{"a-b", "a-b", "a-b", "a%2Db", "a-b", "a-b"}},
		{"a→b", [6]string{"a→b", "a→b", "a→b", "a→b", "a%E2%86%92b", "a→b"}},
		{"a↓b", [6]string{"a↓b", "a↓b", "a↓b", "a↓b", "a↓b", "a↓b"}}, // begins with the same byte
		{"::", [6]string{"::", "%3A%3A", "::", "::", "::", "::"}},
		// Braces and % always are.
		{"{a}", [6]string{"%7Ba%7D", "%7Ba%7D", "%7Ba%7D", "%7Ba%7D", "%7Ba%7D", "%7Ba%7D"}},
		{"50%", [6]string{"50%25", "50%25", "50%25", "50%25", "50%25", "50%25"}},
		{"%3A", [6]string{"%253A", "%253A", "%253A", "%253A", "%253A", "%253A"}},
		{"%~", [6]string{"%25~", "%25~", "%25~", "%25~", "%25~", "%25~"}},
		// So is what can't be seen.
		{" a ", [6]string{"%20a%20", "%20a%20", "%20a%20", "%20a%20", "%20a%20", "%20a%20"}},
		{"a\r\nb", [6]string{"a%0D%0Ab", "a%0D%0Ab", "a%0D%0Ab", "a%0D%0Ab", "a%0D%0Ab", "a%0D%0Ab"}},
		{"\x00\x7f", [6]string{"%00%7F", "%00%7F", "%00%7F", "%00%7F", "%00%7F", "%00%7F"}},
		{"\u00a0", [6]string{"%C2%A0", "%C2%A0", "%C2%A0", "%C2%A0", "%C2%A0", "%C2%A0"}},
		{"\u2028", [6]string{"%E2%80%A8", "%E2%80%A8", "%E2%80%A8", "%E2%80%A8", "%E2%80%A8", "%E2%80%A8"}},
		{"\u0085", [6]string{"%C2%85", "%C2%85", "%C2%85", "%C2%85", "%C2%85", "%C2%85"}},
		// Letters of all alphabets stay, and bytes that are none don't.
		{"é漢😀", [6]string{"é漢😀", "é漢😀", "é漢😀", "é漢😀", "é漢😀", "é漢😀"}},
		{"\ufffd", [6]string{"\ufffd", "\ufffd", "\ufffd", "\ufffd", "\ufffd", "\ufffd"}},
		{"\xff", [6]string{"%FF", "%FF", "%FF", "%FF", "%FF", "%FF"}},
		{"a\xe2\x86", [6]string{"a%E2%86", "a%E2%86", "a%E2%86", "a%E2%86", "a%E2%86", "a%E2%86"}},
		{"\xc0\x80", [6]string{"%C0%80", "%C0%80", "%C0%80", "%C0%80", "%C0%80", "%C0%80"}},
		{"\xed\xa0\x80", [6]string{"%ED%A0%80", "%ED%A0%80", "%ED%A0%80", "%ED%A0%80", "%ED%A0%80", "%ED%A0%80"}},
	} {
		for i, suffix := range suffixes {
			text := "#{req.A}" + suffix
			if suffix == "}" {
				text = "{" + text
			}
			got := stockKeys(t, text, stockRequest{A: tt.value})[0]
			want := tt.want[i] + suffix
			if suffix == "}" {
				want = "{" + want
			}
			if got != want {
				t.Errorf("%q of %q makes %q, want %q", text, tt.value, got, want)
			}
		}
	}
}

// A number has digits and a minus, which what follows can make special.
func TestEscapesOfNumbers(t *testing.T) {
	for _, tt := range []struct {
		text string
		want string
	}{
		{"#{req.Seq}", "-507"},
		{"#{req.Seq}:", "-507:"},
		{"#{req.Seq}-", "%2D507-"},
		{"#{req.Seq}0", "-5%3070"},
		{"#{req.Seq}7x", "-50%377x"},
		{"#{req.Seq}1", "-5071"},
		{"#{req.Shard}-", "507-"},
		{"#{req.Shard}5", "%35075"},
		{"#{string(req.Seq) + '-'}x", "%2D507-x"},
		{"#{join([req.Seq, req.Seq], '-')}", "%2D507-%2D507"},
		{"#{join([req.Seq, 5], '5')};", "-%3507" + "5" + "%35;"},
	} {
		keys, err := expand(t, tt.text, &payRequest{Seq: -507, Shard: 507})
		if err != nil || keys[0] != tt.want {
			t.Errorf("Expand(%q) = %q, %v, want %q", tt.text, keys, err, tt.want)
		}
	}
}
