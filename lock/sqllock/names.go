package sqllock

import (
	"crypto/sha256"
	"encoding/base32"
	"strings"
	"unicode/utf8"
)

// nameOf returns the name of a key in the table. That is the key itself, if each database can take it and tell it from others: it is
// valid UTF-8 of at most limit characters, without a NUL and without a blank at its end. Otherwise it is what can be read of the
// key's beginning, and a digest of all of it behind a tilde: 64 characters in all. A key that looks like that gets a digest, too.
func nameOf(key string, limit int) string {
	if utf8.ValidString(key) && utf8.RuneCountInString(key) <= limit && !strings.ContainsRune(key, 0) && !strings.HasSuffix(key, " ") &&
		!looksDigested(key) {
		return key
	}
	digest := sha256.Sum256([]byte(key))
	tail := digits.EncodeToString(digest[:20])
	var head strings.Builder
	for n, r := range []rune(key[:min(len(key), utf8.UTFMax*headLength)]) {
		if n == headLength {
			break
		}
		if r < ' ' || r == utf8.RuneError {
			r = '_'
		}
		head.WriteRune(r)
	}
	return head.String() + "~" + tail
}

// A digest of 160 bits is 32 digits; they have no capitals, so that any collation keeps them apart.
const (
	alphabet     = "abcdefghijklmnopqrstuvwxyz234567"
	digestLength = 32
	headLength   = DefaultNameLength - 1 - digestLength
)

var digits = base32.NewEncoding(alphabet).WithPadding(base32.NoPadding)

func looksDigested(key string) bool {
	at := len(key) - digestLength - 1
	return at >= 0 && key[at] == '~' && strings.Trim(key[at+1:], alphabet) == ""
}
