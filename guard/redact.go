package guard

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// redacted stands for a key in a log.
const redacted = "<key>"

// redact returns text with all of keys redacted that stand in it by themselves, as they are or as %q and %+q write them.
//
// A key stands by itself between all but letters, digits and underscores, also in names that are made of it, such as
// redisson_lock__channel:{key}. One that has nothing else in it, such as "order" or "7", could be a part of any word: a dot, a hyphen or an
// apostrophe joins it to what is beyond, as in "order.settle" or "10.0.0.7".
func redact(text string, keys []string) string {
	forms := make([]string, 0, 3*len(keys))
	for _, key := range keys {
		quoted, ascii := strconv.Quote(key), strconv.QuoteToASCII(key)
		forms = append(forms, key, quoted[1:len(quoted)-1], ascii[1:len(ascii)-1])
	}
	slices.SortFunc(forms, func(a, b string) int { return len(b) - len(a) }) // the longest first, as one can be in another
	for before := ""; text != before; {                                      // as a word can be joined to a key that has gone
		before, text = text, redactOnce(text, forms)
	}
	return text
}

func redactOnce(text string, forms []string) string {
	var b strings.Builder
	for text != "" {
		_, size := utf8.DecodeRuneInString(text)
		if strings.HasPrefix(text, redacted) {
			size = len(redacted)
		} else if i := slices.IndexFunc(forms, func(form string) bool { return standsAlone(b.String(), form, text) }); i >= 0 {
			b.WriteString(redacted)
			text = text[len(forms[i]):]
			continue
		}
		b.WriteString(text[:size])
		text = text[size:]
	}
	return b.String()
}

// standsAlone reports whether text, which follows before, begins with key, and key is not a part of a longer word.
func standsAlone(before, key, text string) bool {
	after, ok := strings.CutPrefix(text, key)
	if !ok {
		return false
	}
	isWord := !strings.ContainsFunc(key, func(r rune) bool { return !inWord(r) })
	joins := func(edge, near, beyond rune) bool {
		return inWord(edge) && (inWord(near) || isWord && strings.ContainsRune(".-'", near) && inWord(beyond))
	}
	first, _ := utf8.DecodeRuneInString(key)
	last, _ := utf8.DecodeLastRuneInString(key)
	left, size := utf8.DecodeLastRuneInString(before)
	beyondLeft, _ := utf8.DecodeLastRuneInString(before[:len(before)-size])
	right, size := utf8.DecodeRuneInString(after)
	beyondRight, _ := utf8.DecodeRuneInString(after[size:])
	return !joins(first, left, beyondLeft) && !joins(last, right, beyondRight)
}

func inWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) || r == '_' }
