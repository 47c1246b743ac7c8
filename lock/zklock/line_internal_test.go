package zklock

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/latchkey-go/latchkey/lock"
)

const guid = "_c_0f4bd1bc-3ed9-4f3d-8f0e-0a8f6f0d7a11-"

func TestParse(t *testing.T) {
	for _, tt := range []struct {
		name string
		want member
		ok   bool
	}{
		{guid + "lock-0000000007", member{kind: lock.Exclusive, sequence: 7}, true},
		{"lock-0000000007", member{kind: lock.Exclusive, sequence: 7}, true}, // without protection
		{guid + "__READ__2147483647", member{kind: lock.Read, sequence: math.MaxInt32}, true},
		{guid + "__WRIT__-2147483648", member{kind: lock.Write, sequence: math.MinInt32}, true},
		{"key", member{}, false},
		{"lock-", member{}, false},
		{"lock-42", member{}, false}, // somebody's key
		{"lock-+000000007", member{}, false},
		{"lock-99999999999999999999", member{}, false},
	} {
		tt.want.name = tt.name
		if !tt.ok {
			tt.want = member{}
		}
		if got, ok := parse(tt.name); ok != tt.ok || got != tt.want {
			t.Errorf("parse(%q) = %v, %v, want %v, %v", tt.name, got, ok, tt.want, tt.ok)
		}
	}
}

func TestForeignNodes(t *testing.T) {
	for name, want := range map[string]error{
		"key":                             nil,
		"lock-42":                         nil,
		"_c_guid-lease-0000000003":        lock.ErrRefused, // of a semaphore
		"9f__lock__0000000003":            lock.ErrRefused, // Kazoo's
		"lock-99999999999999999999":       lock.ErrRefused,
		guid + "lock-0000000003":          nil,
		"11111111111111111111/0000000003": lock.ErrRefused,
	} {
		if _, err := members([]string{name}); !errors.Is(err, want) {
			t.Errorf("members(%q) = %v, want %v", name, err, want)
		}
	}
}

// ahead of each of these in a line, by their number; "" if it is its turn.
var aheadTests = []struct {
	line string // of x, r and w
	at   int
	want int // -1 if it is its turn, -2 for a KindError
}{
	{"x", 0, -1},
	{"xxx", 2, 1},
	{"rrr", 2, -1},
	{"rrw", 2, 1},
	{"wrr", 2, 0},
	{"rwr", 2, 1},
	{"wrwr", 3, 2},
	{"wwr", 2, 1},
	{"rwrw", 0, -1},
	{"wx", 1, -2},
	{"xw", 1, -2},
	{"xr", 1, -2},
	{"xwx", 2, 0}, // the writer is about to leave
	{"wxr", 2, 0},
	{"wxrr", 3, 0},
}

func TestAhead(t *testing.T) {
	kinds := map[byte]lock.Kind{'x': lock.Fair, 'r': lock.Read, 'w': lock.Write}
	for _, tt := range aheadTests {
		var line []member
		for i := range len(tt.line) {
			m, ok := parse(fmt.Sprintf("%s%s%010d", guid, mark(kinds[tt.line[i]]), i))
			if !ok {
				t.Fatal(tt.line)
			}
			line = append(line, m)
		}
		own := line[tt.at]
		rand.Shuffle(len(line), func(i, j int) { line[i], line[j] = line[j], line[i] })
		nearest, err := ahead(line, own)
		_, wrong := errors.AsType[*lock.KindError](err)
		got := -1
		switch {
		case wrong:
			got = -2
		case nearest != nil:
			got = int(nearest.sequence)
		}
		if got != tt.want {
			t.Errorf("ahead(%s, %d) = %d, %v, want %d", tt.line, tt.at, got, err, tt.want)
		}
	}
}

func TestLineEndsBeforeItsCounterWraps(t *testing.T) {
	for _, n := range []int64{lastSequence + 1, math.MaxInt32, math.MinInt32, -1} {
		own := member{kind: lock.Exclusive, sequence: n}
		if _, err := ahead([]member{own}, own); !errors.Is(err, errSpent) {
			t.Errorf("ahead at number %d = %v, want %v", n, err, errSpent)
		}
	}
	own := member{kind: lock.Exclusive, sequence: lastSequence}
	if _, err := ahead([]member{own}, own); err != nil {
		t.Errorf("ahead at number %d = %v", lastSequence, err)
	}
}
