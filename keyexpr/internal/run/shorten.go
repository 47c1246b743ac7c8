package run

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"unicode/utf8"
)

// shorten makes a key of more than MaxKey bytes a readable head and a digest of all of it. A hash tag stays whole, so that
// the key keeps its slot in a Redis Cluster; one that is too long for that is an error.
func (p *Program) shorten(key []byte) ([]byte, error) {
	if p.Raw {
		// Somebody else makes the same key, and would not make the digest.
		return nil, Faulty("makes a key of more than %d bytes with raw", MaxKey)
	}
	sum := sha256.Sum256(key)
	room := MaxKey - digestTail
	open, end := hashTag(key)
	head := cut(key, room)
	if end > len(head) {
		tag := key[open:end]
		if len(tag) > maxTag {
			return nil, Faulty("makes a hash tag of more than %d bytes", maxTag)
		}
		head = append(bytes.Clone(cut(key[:open], room-len(tag))), tag...)
	}
	short := make([]byte, 0, MaxKey)
	short = append(short, head...)
	short = append(short, DigestMark...)
	return hex.AppendEncode(short, sum[:]), nil
}

// hashTag returns where the hash tag of a key begins and ends, with its braces; 0, 0 if there is none. As in Redis, it
// is what stands between the first opening brace and the next closing one, unless that is nothing.
func hashTag(key []byte) (open, end int) {
	open = bytes.IndexByte(key, '{')
	if open < 0 {
		return 0, 0
	}
	n := bytes.IndexByte(key[open:], '}')
	if n <= 1 {
		return 0, 0
	}
	return open, open + n + 1
}

// cut returns at most n bytes of s, and ends it neither within a rune nor within %XX.
func cut(s []byte, n int) []byte {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	for i := max(n-2, 0); i < n; i++ {
		if s[i] == '%' {
			return s[:i]
		}
	}
	return s[:n]
}
