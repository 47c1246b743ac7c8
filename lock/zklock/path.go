package zklock

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// longestName is the length of the longest key that is a node's name as it is. A request has to stay under 1 MiB.
const longestName = 32 << 10

// digested is how the name of an encoded key ends.
var digested = regexp.MustCompile(`%[0-9a-f]{64}$`)

// dir returns the path of the node under which those stand in line who want key: its name is the key itself, if ZooKeeper's Java
// client takes that, and otherwise some of its text with a digest of all of it. A key that looks like the latter is digested, too, so
// that different keys have different names.
func dir(root, key string) string {
	reserved := root == "" && key == "zookeeper"
	if len(key) <= longestName && plain(key) && !digested.MatchString(key) && !reserved {
		return root + "/" + key
	}
	return root + "/" + digest(key)
}

func digest(key string) string {
	var b strings.Builder
	for _, r := range key {
		if b.Len() > 48 {
			break
		}
		if r < 0x80 && plain("x"+string(r)) && r != '%' {
			b.WriteRune(r)
		} else {
			b.WriteByte('_')
		}
	}
	sum := sha256.Sum256([]byte(key))
	return b.String() + "%" + hex.EncodeToString(sum[:])
}

// plain reports whether s may be one part of a path. It is the strictest of the rules of the servers, the Java client and the Go
// client, which differ in characters beyond U+FFFF, for one.
func plain(s string) bool {
	if s == "" || s == "." || s == ".." || !utf8.ValidString(s) {
		return false
	}
	for _, r := range s {
		switch {
		case r == '/', r <= 0x1f, r >= 0x7f && r <= 0x9f, r >= 0xd800 && r <= 0xf8ff, r >= 0xfff0:
			return false
		}
	}
	return true
}

// checkRoot returns what is wrong with the path of a root, which is without a slash at its end.
func checkRoot(root string) error {
	if root == "" {
		return nil
	}
	if root[0] != '/' {
		return fmt.Errorf("zklock: the root %q must begin with a slash", root)
	}
	parts := strings.Split(root[1:], "/")
	for _, p := range parts {
		if !plain(p) {
			return fmt.Errorf("zklock: the root %q has the part %q, which is no name of a node", root, p)
		}
	}
	if parts[0] == "zookeeper" {
		return fmt.Errorf("zklock: the root %q is in the part of the tree that is ZooKeeper's own", root)
	}
	return nil
}
