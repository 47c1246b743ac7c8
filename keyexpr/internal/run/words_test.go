package run

import (
	"strings"
	"testing"
)

// Each byte at each place of a text, with what is escaped and what is not around it, is judged by the word as it is by the
// table. A carry or a borrow between neighbours would show.
func TestWordsAgreeWithTheTable(t *testing.T) {
	escapes := []*Escape{Before(nil), Before([]rune{':'}), Before([]rune{'z'}), Before([]rune{'&'}), Before([]rune{'0', '/'}), Before([]rune{'é'})}
	for _, around := range []byte{'a', '!', 'z', '&', '{', 0x00, 0x7f, 0x80, 0xff} {
		for _, n := range []int{7, 8, 9, 15, 16, 17} {
			for at := range n {
				for c := range 256 {
					b := []byte(strings.Repeat(string([]byte{around}), n))
					b[at] = byte(c)
					s := string(b)
					for i, e := range escapes {
						if n >= wordSize && e.leavesAll(s) && string(e.append(nil, s)) != s {
							t.Fatalf("escape %d leaves all of %q", i, s)
						}
					}
					if NoneOf(s, 'A', 'Z') && strings.IndexFunc(s, func(r rune) bool { return r >= 0x80 || r >= 'A' && r <= 'Z' }) >= 0 {
						t.Fatalf("none of A to Z, and no other than ASCII, is in %q", s)
					}
				}
			}
		}
	}
}

// What words are there for: ids are found to be plain by them, and lower texts to be lower.
func TestWordsKnowIds(t *testing.T) {
	for _, id := range []string{"acme-industries", "018f6b1e-7d5a-7cc0-b1a2-1234567890ab", "ORDER_1234567890", "a@example.com", "v1/orders/7,8;(9)"} {
		if !Before([]rune{':'}).leavesAll(id) || !Before(nil).leavesAll(id) {
			t.Errorf("each byte of %q is looked at", id)
		}
		if lower := strings.ToLower(id); !NoneOf(lower, 'A', 'Z') || NoneOf(strings.ToUpper(id), 'A', 'Z') {
			t.Errorf("%q is not known to be lower", lower)
		}
	}
}
