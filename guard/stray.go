package guard

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/latchkey-go/latchkey/internal/suggest"
	"github.com/latchkey-go/latchkey/lock"
)

// stray is an attribute that became a part of the value before it: with the key "order:7 wait=2s", nobody would wait.
type stray struct {
	at        int    // where its separator is
	separator string // in words, with its article
	text      string // of the attribute, or of its name up to the =
	write     string // instead, behind a semicolon; empty if there is no such attribute
	slip      bool   // in the name
}

// separators are what may be taken for a semicolon, in words. What a key has itself is none by itself: a colon, a slash, a
// plus or an ampersand separates an attribute only if that is complete, and behind the last hole.
var separators = map[rune]string{
	',': "a comma", '，': "a comma", '、': "a comma", ';': "a semicolon", '；': "a full-width semicolon", '\u037e': "a question mark of Greek",
	'|': "a bar", ':': "a colon", '：': "a colon", '/': "a slash", '+': "a plus", '&': "an ampersand",
}

// isBlank reports whether r is not seen.
func isBlank(r rune) bool { return unicode.IsSpace(r) || unicode.Is(unicode.Cf, r) }

// scanned is a text that is searched for strays. Dots stand for its holes.
type scanned struct {
	text   string
	source string // with the holes, for what to write
	holes  int    // where the last hole ends; 0 without one
}

// strays finds the attributes in a text, in their order.
func (s scanned) strays() (found []stray) {
	for i := 0; i < len(s.text); {
		r, size := utf8.DecodeRuneInString(s.text[i:])
		separator := separators[r]
		if isBlank(r) {
			separator = "a blank"
		}
		next := i + size
		if separator == "" {
			i = next
			continue
		}
		if !strings.ContainsRune(":：/+&", r) {
			next = len(s.text) - len(strings.TrimLeftFunc(s.text[next:], isBlank))
		}
		if one, ok := s.behind(r, next, i >= s.holes); ok {
			one.at, one.separator = i, separator
			found = append(found, one)
		}
		i = next
	}
	return found
}

// A name, and what is behind it: a value after an equals sign, a colon or a blank, or nothing.
var (
	assigned = regexp.MustCompile(`^([A-Za-z][A-Za-z_-]*)[\s\p{Z}]*=(?:$|[^=])`)
	valued   = regexp.MustCompile(`^([A-Za-z][A-Za-z_-]*)(?:[\s\p{Z}]*[:：][\s\p{Z}]*|[\s\p{Z}]+)([^\s\p{Z},，;；|]+)`)
	alone    = regexp.MustCompile(`^([A-Za-z0-9µ.][A-Za-z0-9µ._-]*)[\s\p{Z}]*(?:$|[;；,，])`)
	written  = regexp.MustCompile(`^[\s\p{Z}]*([^\s\p{Z},，;；|&+]+)`)
	compares = regexp.MustCompile(`^[Ww][Hh][Ee][Nn][\s\p{Z}]+.*([=!]=|[<>]|&&|\|\||[\pL_]\.[\pL_])`)
)

// behind returns what is at an offset behind a separator, if it is an attribute. last says that no hole follows.
func (s scanned) behind(separator rune, at int, last bool) (stray, bool) {
	rest := s.text[at:]
	if m := assigned.FindStringSubmatch(rest); m != nil {
		value := ""
		if v := written.FindStringSubmatch(rest[strings.Index(rest, "=")+1:]); v != nil {
			value = v[1]
		}
		return strayAssigned(separator, m[1], value, s.source[at:], last)
	}
	if strings.ContainsRune(":：/+&|", separator) {
		return stray{}, false
	}
	if m := valued.FindStringSubmatch(rest); m != nil {
		if name := attributeOf(m[1]); complete(name, m[2], isBlank(separator)) {
			return stray{text: m[0], write: name + "=" + m[2]}, true
		}
	}
	if last && compares.MatchString(rest) {
		return stray{text: "when", write: "when=" + strings.TrimSpace(s.source[at+len("when"):])}, true
	}
	if m := alone.FindStringSubmatch(rest); m != nil {
		return s.strayAlone(isBlank(separator), m[1], s.source[at:], last)
	}
	return stray{}, false
}

// strayAssigned is behind for a name with an equals sign.
func strayAssigned(separator rune, name, value, rest string, last bool) (stray, bool) {
	lower := strings.ToLower(name)
	one := stray{text: lower + "=", write: lower + rest[len(name):]}
	if strings.ContainsRune(":：/+&", separator) {
		ok := last && complete(lower, value, true)
		_, err := parseDuration(value)
		return one, ok && (err == nil || strings.ContainsRune("+&", separator))
	}
	if meant, ok := elsewhere[lower]; ok {
		_, err := parseDuration(value)
		_, number := counts("").parse(value)
		if one.write = ""; meant != "" {
			one.write = meant + "=" + value
		}
		return one, err == nil || number == nil
	}
	near, distance := suggest.Nearest(name, attributeNames)
	if distance > 0 {
		one.slip, one.write = true, rest
	}
	return one, near != "" && distance <= 1+len(name)/5
}

// strayAlone is behind for a word alone. Behind a blank it is one of ours only if no key would end with it.
func (s scanned) strayAlone(blank bool, word, rest string, last bool) (stray, bool) {
	lower := strings.ToLower(word)
	i := slices.Index(attributeNames, lower)
	owner := ownerOf(lower)
	_, noDuration := parseDuration(word)
	switch {
	case i >= 0 && (!blank || attributes[i].style == flag):
		return stray{text: lower, write: lower + rest[len(word):]}, true
	case lower == "omitempty":
		return stray{text: lower}, true
	case !last:
		return stray{}, false
	case owner != "" && (!blank || s.holes > 0 && !slices.Contains(commonWords, lower)):
		return stray{text: lower, write: owner + "=" + lower}, true
	case noDuration == nil && !blank && word != "0":
		return stray{text: word, write: "wait=" + word}, true
	}
	return stray{}, false
}

// elsewhere are attributes of other libraries, and those of ours that are meant.
var elsewhere = map[string]string{"ttl": "lease", "expire": "lease", "expires": "lease", "timeout": "wait", "retry": "", "retries": ""}

// commonWords are values that a key may well end with, behind a blank. The last two are what is done without them, too.
var commonWords = []string{lock.Read.String(), lock.Write.String(), lock.Permit.String(), Replace.String(), lock.Exclusive.String(), Fail.String()}

// attributeOf returns the attribute that a name means, or the name.
func attributeOf(name string) string {
	name = strings.ToLower(name)
	if meant := elsewhere[name]; meant != "" {
		return meant
	}
	return name
}

// complete reports whether value is one that the attribute called name takes, and few others would: a duration, a kind, a
// policy. A number is one only where a blank is not all that separates them.
func complete(name, value string, blank bool) bool {
	i := slices.Index(attributeNames, name)
	if i < 0 {
		return false
	}
	a := attributes[i]
	_, isTime := parseDuration(value)
	switch a.field {
	case fieldWait, fieldLease, fieldMaxHold, fieldHold:
		return isTime == nil || value == forever
	case fieldLimit, fieldWaiters:
		return !blank && a.parse(new(Spec), value) == nil
	case fieldKind, fieldBusy, fieldOutage:
		return a.parse(new(Spec), strings.ToLower(value)) == nil
	}
	return false
}
