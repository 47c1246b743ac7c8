package mongolock

import (
	"encoding/base64"
	"strings"
	"unicode/utf8"
)

// encoded is the beginning of an _id for a key that can't be an _id as it is.
const encoded = "latchkey:base64:"

// idOf returns the _id for a key: the key itself, as ShedLock has it. BSON has no broken UTF-8, so that the bytes of such a key are
// encoded, and so is a key that looks encoded: different keys have different documents.
func idOf(key string) string {
	if utf8.ValidString(key) && !strings.HasPrefix(key, encoded) {
		return key
	}
	return encoded + base64.RawURLEncoding.EncodeToString([]byte(key))
}
