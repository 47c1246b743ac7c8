package guard

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/latchkey-go/latchkey/internal/suggest"
)

// stray is an attribute that became a part of the value before it: with the key "order:7 wait=2s", nobody would wait.
type stray struct {
	at        int    // where its separator is
	separator string // which stands for a semicolon
	name      string // with its equals sign, if it has one
	write     string // instead, behind a semicolon; empty if there is no such attribute
	slip      bool   // in the name
}

// strayed matches what is taken for a semicolon, and behind it a name with an equals sign, a condition, or a last word.
var strayed = regexp.MustCompile(`([,;|，、；]|[\s\p{Z}\p{Cf}])[\s\p{Z}\p{Cf}]*(?:([A-Za-z_-]+)[\s\p{Z}]*=(?:[^=]|$)|((?i:when)\s+[\w]*[.=<>!]|[A-Za-z-]+[\s\p{Z}]*$))`)

// separators are the common ones in words.
var separators = map[string]string{",": "a comma", " ": "a blank", "|": "a bar"}

// findStray finds the first attribute in a text that has dots for its holes; source has the holes. A name with a slip counts if slips do.
func findStray(text, source string, slips bool) (stray, bool) {
	for _, m := range strayed.FindAllStringSubmatchIndex(text, -1) {
		one := stray{at: m[2], separator: cmp.Or(separators[text[m[2]:m[3]]], strconv.Quote(text[m[2]:m[3]]))}
		known := false
		if m[4] >= 0 {
			known = one.assigned(text[m[4]:m[5]], source[m[4]:])
		} else {
			word, _, _ := strings.Cut(strings.TrimSpace(text[m[6]:m[7]]), " ")
			known = one.alone(word, source[m[6]:], strings.TrimSpace(text[m[2]:m[3]]) == "")
		}
		if known && (slips || !one.slip) {
			return one, true
		}
	}
	return stray{}, false
}

// elsewhere are attributes of other libraries, and those of ours that are meant.
var elsewhere = map[string]string{"ttl": "lease", "expire": "lease", "expires": "lease", "timeout": "wait", "retry": "", "retries": ""}

// assigned reports whether a name with an equals sign, at the beginning of rest, is that of an attribute.
func (s *stray) assigned(name, rest string) bool {
	lower := strings.ToLower(name)
	s.name, s.write = lower+"=", lower+rest[len(name):]
	if meant, other := elsewhere[lower]; other {
		if s.write = ""; meant != "" {
			s.write = meant + rest[len(name):]
		}
		return !strings.HasPrefix(rest[len(name):], "=#{")
	}
	near, distance := suggest.Nearest(name, attributeNames)
	if s.slip = distance > 0; s.slip {
		s.write = rest
	}
	return near != "" && distance <= 1+len(name)/5
}

// alone reports whether a word without an equals sign is an attribute, or the value of one. Behind a blank, a key may end with it.
func (s *stray) alone(word, rest string, blank bool) bool {
	s.name = strings.ToLower(word)
	i, owner := slices.Index(attributeNames, s.name), ownerOf(s.name)
	switch {
	case s.name == "when":
		s.write = "when=" + strings.TrimSpace(rest[len(word):])
	case i >= 0 && attributes[i].style == flag:
		s.write = s.name
	case owner != "" && !blank:
		s.write = owner + "=" + s.name
	default:
		return s.name == "omitempty"
	}
	return true
}
