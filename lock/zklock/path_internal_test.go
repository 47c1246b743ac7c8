package zklock

import (
	"strings"
	"testing"
)

func TestKeysOfPeersStayAsTheyAre(t *testing.T) {
	for _, key := range []string{"order:42", "größe 42", "a.b", "..a", "%41", "{order}", "A", "a ", "汉字", strings.Repeat("k", 10_001)} {
		if got := dir("/locks", key); got != "/locks/"+key {
			t.Errorf("dir(%.20q) = %.40q", key, got)
		}
	}
}

func TestOtherKeysAreDigested(t *testing.T) {
	seen := make(map[string]string)
	keys := []string{".", "..", "a/b", "/", "a\x00b", "a\nb", "\x7f", "\xff", "a\xff", "😀", "\ue000", "\ufffd", "\u0085",
		strings.Repeat("k", longestName+1), strings.Repeat("k", longestName+2), "zookeeper", "zookeeper/", "a_b"}
	for _, key := range keys {
		got := dir("", key)
		if other, again := seen[got]; again {
			t.Errorf("%q and %q have the path %q", key, other, got)
		}
		seen[got] = key
		if name := got[1:]; !plain(name) || len(name) > longestName || strings.Contains(name, "/") || got == "/zookeeper" {
			t.Errorf("dir(%q) = %q", key, got)
		}
		if again := dir("", got[1:]); again == got && key != "a_b" {
			t.Errorf("the key %q has the path of the key %.20q", got[1:], key)
		}
	}
}

func TestRoots(t *testing.T) {
	for root, ok := range map[string]bool{
		"": true, "/locks": true, "/app/locks": true, "/app/locks of größe": true,
		"locks": false, "/app//locks": false, "/app/../locks": false, "/zookeeper": false, "/zookeeper/locks": false, "/a\x00": false,
	} {
		if err := checkRoot(root); (err == nil) != ok {
			t.Errorf("checkRoot(%q) = %v", root, err)
		}
	}
}
