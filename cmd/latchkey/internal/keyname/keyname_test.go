package keyname_test

import (
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/latchkey-go/latchkey/cmd/latchkey/internal/keyname"
)

const client = "aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee"

// Whatever redisson/WIRE.md has in its tables of keys and channels is known.
func TestDecodeKnowsTheDocumentedNames(t *testing.T) {
	text, err := os.ReadFile("../../../../redisson/WIRE.md")
	if err != nil {
		t.Fatal(err)
	}
	tails := map[string]string{"redisson_unlock_latch": ":0123456789abcdef0123456789abcdef", "latchkey_receipt": ":" + client + ":1"}
	found := 0
	for _, m := range regexp.MustCompile("(?m)^\\| `([PS])\\((\\w+)\\)").FindAllSubmatch(text, -1) {
		if string(m[2]) == "prefix" || string(m[2]) == "suffix" { // the rules themselves
			continue
		}
		name := string(m[2]) + ":{o}" + tails[string(m[2])]
		if string(m[1]) == "S" {
			name = "{o}:" + string(m[2])
		}
		if string(m[2]) == "H" {
			name = "{o}:" + client + ":1:rwlock_timeout:1"
		}
		found++
		if got := keyname.Decode(name); !slices.Equal(got[0].Of, []string{"o", "{o}"}) {
			t.Errorf("Decode(%q) = %+v", name, got)
		}
	}
	if found < 12 {
		t.Errorf("WIRE.md has only %d names", found)
	}
}

func TestDecodeReadsIDs(t *testing.T) {
	for _, tt := range []struct {
		name, client, number string
		of                   []string
	}{
		{"redisson_lock__channel:a{b}:" + client + ":7", client, "7", []string{"a{b}"}},
		{"{o}:" + client + ":7:rwlock_timeout:1", client, "7", []string{"o", "{o}"}},
		{"latchkey_receipt:{o}:" + client + ":3", client, "3", []string{"o", "{o}"}},
		{"redisson_countdownlatch__channel__{a{b}}", "", "", []string{"a{b}"}},
		{client + ":7:write", client, "7", nil},
		{"latchkey_client:" + client, client, "", nil},
		{"o\n{x}:timeout", "", "", []string{"o\n{x}"}},
		{"redisson_lock_queue:o", "", "", []string{"redisson_lock_queue:o"}}, // no rule makes that
	} {
		got := keyname.Decode(tt.name)[0]
		if got.Client != tt.client || got.Number != tt.number || !slices.Equal(got.Of, tt.of) {
			t.Errorf("Decode(%q) = %+v", tt.name, got)
		}
	}
}
