package guard

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

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

// strayed matches what is taken for a semicolon, and behind it a name with an equals sign, a condition, a name with a number, or a last word.
var strayed = regexp.MustCompile(`([,;|，、；]|[\s\p{Z}\p{Cf}])[\s\p{Z}\p{Cf}]*(?:([A-Za-z][A-Za-z_-]*)[\s\p{Z}]*=|((?i:when)\s.*?(?:[=!]=|[<>]|&&|[\pL_]\.[\pL_])|` +
	`[A-Za-z][A-Za-z-]*(?:[\s\p{Z}]*[:：\s\p{Z}][\s\p{Z}]*\d[^\s:]*)?[\s\p{Z}]*$))`)

// separators are the common ones in words.
var separators = map[string]string{",": "a comma", " ": "a blank", "|": "a bar"}

// findStray finds the first attribute in a text that has dots for its holes; source has the holes. A name with a slip counts if slips do.
func findStray(text, source string, slips bool) (stray, bool) {
	for _, m := range strayed.FindAllStringSubmatchIndex(text, -1) {
		one := stray{at: m[2], separator: cmp.Or(separators[text[m[2]:m[3]]], strconv.Quote(text[m[2]:m[3]]))}
		known := false
		switch {
		case m[4] < 0:
			known = one.alone(strings.FieldsFunc(text[m[6]:m[7]], isBetween), source[m[6]:], strings.Trim(text[m[2]:m[3]], "|\t\u00a0 ") == "")
		case m[1] == len(text) || text[m[1]] != '=':
			known = one.assigned(text[m[4]:m[5]], source[m[4]:])
		}
		if known && (slips || !one.slip) {
			return one, true
		}
	}
	return stray{}, false
}

// elsewhere are attributes of other libraries, and those of ours that are meant.
var elsewhere = map[string]string{
	"timeout": "wait", "waittime": "wait", "waittimeout": "wait", "acquiretimeout": "wait", "waitforever": "wait", "retry": "", "retries": "",
	"ttl": "lease", "expire": "lease", "expires": "lease", "expiry": "lease", "leasetime": "lease", "lockatmostfor": "lease", "lockatleastfor": "hold",
}

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

// isBetween reports whether r stands between a name and its value.
func isBetween(r rune) bool { return r == ':' || r == '：' || unicode.IsSpace(r) }

// alone reports whether words without an equals sign are an attribute, the value of one, or both, which are a time. Behind a blank, a key may end with a
// value.
func (s *stray) alone(words []string, rest string, blank bool) bool {
	s.name = strings.ToLower(words[0])
	name := cmp.Or(elsewhere[s.name], s.name)
	i, owner := slices.Index(attributeNames, name), ownerOf(s.name)
	switch {
	case s.name == "when" && len(words) > 1:
		s.write = "when=" + strings.TrimSpace(rest[len("when"):])
	case len(words) > 1:
		_, err := parseDuration(words[1])
		s.write = name + "=" + words[1]
		return err == nil && i >= 0 && attributes[i].field&(fieldWait|fieldLease|fieldMaxHold|fieldHold) != 0
	case i >= 0 && attributes[i].style == flag:
		s.write = s.name
	case owner != "" && !blank:
		s.write = owner + "=" + s.name
	default:
		return s.name == "omitempty"
	}
	return true
}
