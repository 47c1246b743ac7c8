package run

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode/utf8"
)

// How a key is made, and how it is read back. A long key is shortened for people and for Redis, in a
// way that keeps two keys apart and the slot of a cluster the same. A short one is read back by the
// parts that it was made of.

// shorten makes a key of more than MaxKey bytes a readable head and a digest of all of it. A
// hash tag stays whole, so that the key keeps its slot in a Redis Cluster; one that is too long
// for that is an error. The digest is of all of the key, the part that is still there included,
// so that two keys with one head differ. The head is for people, who look for "order:" in Redis.
func (p *Program) shorten(key []byte) ([]byte, error) {
	if p.Raw {
		// Somebody else makes the same key, and would not make the digest.
		return nil, Faulty("makes a key of more than %d bytes with raw", MaxKey)
	}
	// A digest that nobody can find a second key for. With a quick one, a client could choose an id
	// whose key is that of another client, and hold that lock.
	sum := sha256.Sum256(key)
	room := MaxKey - digestTail
	open, end := hashTag(key)
	head := cut(key, room)
	if end > len(head) {
		tag := key[open:end]
		if len(tag) > maxTag {
			return nil, Faulty("makes a hash tag of more than %d bytes", maxTag)
		}
		// Cloned, since the head is a piece of the key's own buffer, and the tag would be written over
		// what it is copied from.
		head = append(bytes.Clone(cut(key[:open], room-len(tag))), tag...)
	}
	short := make([]byte, 0, MaxKey)
	short = append(short, head...)
	short = append(short, DigestMark...)
	return hex.AppendEncode(short, sum[:]), nil
}

// hashTag returns where the hash tag of a key begins and ends, with its braces; 0, 0 if there is
// none. As in Redis, it is what stands between the first opening brace and the next closing one,
// unless that is nothing. To keep it matters for locks of several keys, which Redis Cluster
// takes in one script only if they have one slot.
func hashTag(key []byte) (open, end int) {
	open = bytes.IndexByte(key, '{')
	if open < 0 {
		return 0, 0
	}
	n := bytes.IndexByte(key[open:], '}')
	// Redis takes {} for no tag at all, and hashes the whole key. A later {b} does not count either,
	// as only the first brace is looked at.
	if n <= 1 {
		return 0, 0
	}
	return open, open + n + 1
}

// cut returns at most n bytes of s, and ends it neither within a rune nor within %XX. A cut
// within %3A would leave %3, and within a rune something that is no UTF-8. Both would be shown
// to people as garbage.
func cut(s []byte, n int) []byte {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	// An escape that the cut goes through has begun within the last two bytes. A % that stands there
	// can't be a value's own, as that is %25.
	for i := max(n-2, 0); i < n; i++ {
		if s[i] == '%' {
			return s[:i]
		}
	}
	return s[:n]
}

// Match reads a key back into the values that its holes had.
func (p *Program) Match(key string) (values []string, ok bool) {
	// A digest can't be undone, and the head alone would be read as values that are cut off. A raw value could end anywhere.
	if p.Raw || len(key) > MaxKey || strings.Contains(key, DigestMark) {
		return nil, false
	}
	m := matcher{rest: key}
	if !m.parts(p.All()) || m.rest != "" {
		return nil, false
	}
	return m.read, true
}

// matcher reads a key from left to right. The end of a value never occurs in it unescaped, so there is
// one way to go. So it never goes back, and takes one step for each byte, whatever the key is: keys of
// other programs are tried as well.
type matcher struct {
	rest string
	read []string
}

// A raw value could end anywhere, and is not read.
func (m *matcher) parts(parts []Part) bool {
	for i := range parts {
		p := &parts[i]
		switch {
		case p.Literal():
			rest, ok := strings.CutPrefix(m.rest, p.Text)
			if !ok {
				return false
			}
			m.rest = rest
		case p.Escape == nil || !m.values(p):
			return false
		}
	}
	return true
}

// values reads the values of a hole, with colons between those of key(…).
func (m *matcher) values(p *Part) bool {
	for n := 1; m.value(p); n++ {
		rest, more := strings.CutPrefix(m.rest, ":")
		if p.Values == 0 || n == p.Values || !more {
			return p.Values < 1 || n == p.Values
		}
		m.rest = rest
	}
	return false
}

// value reads up to the first rune that e would have escaped. The value is escaped again and
// compared. So a key that nobody could have made, with an escaped letter or a %zz, is no match,
// and no two keys are read as the same values. A number is digits.
func (m *matcher) value(p *Part) bool {
	s, n, e, leaf := m.rest, 0, p.Escape, LeafOf(p.Type)
	for n < len(s) {
		if s[n] == '%' {
			// The two digits are not checked: one of them may be the end of the value, as 7 is in
			// #{a}7. A malformed escape shows below, where the value is escaped again.
			n += 3
			continue
		}
		size := 1
		if s[n] < utf8.RuneSelf && !e.plain[s[n]] {
			break
		}
		if s[n] >= utf8.RuneSelf {
			var r rune
			if r, size = utf8.DecodeRuneInString(s[n:]); !e.leaves(r, size) {
				break
			}
		}
		n += size
	}
	// No hole makes an empty value. To read one would find values for "order:", which no request has
	// made.
	if n == 0 || n > len(s) {
		return false
	}
	value, ok := Unescape(s[:n])
	m.rest, m.read = s[n:], append(m.read, value)
	return ok && (leaf != LeafInt && leaf != LeafUint || wholeNumber(value)) && string(e.Append(nil, value)) == s[:n]
}
