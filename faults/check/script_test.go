package check_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/faults/check"
	"github.com/latchkey-go/latchkey/faults/history"
)

// play reads a history that is written by hand. A line is a time in ms, a process, an Op, and what is known of it:
//
//	12 a ask 1 lock k lease=1s owner=x wait=2s deadline=2000 limit=3 permits=2 rate=1s
//	14 a enter 1 token=7
//	20 a write 1 token=7 since=15 what=element
//	30 faults fault 1 what=cut servers=s procs=a,b
//
// The number after the Op is that of the call or of the fault; after an ask follow the kind and the keys. A lease is 1s, a wait has
// no bound, and a server is s, unless something else is said.
func play(t *testing.T, text string) (events []history.Event) {
	t.Helper()
	lines := map[string]int{}
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		e := history.Event{At: 1000 + millis(t, words[0]), Proc: words[1], Op: history.Op(words[2])}
		lines[e.Proc]++
		e.Line = lines[e.Proc]
		words = words[3:]
		if len(words) > 0 && !strings.Contains(words[0], "=") {
			n, err := strconv.Atoi(words[0])
			if err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			e.Call, e.ID, words = int64(n), n, words[1:]
		}
		if e.Op == history.Ask {
			e.Kind, e.Keys, e.Servers = words[0], strings.Split(words[1], "+"), []string{"s"}
			e.Lease, e.Wait, words = time.Second, -1, words[2:]
		}
		for _, w := range words {
			set(t, &e, w)
		}
		events = append(events, e)
	}
	if !slices.IsSortedFunc(events, func(a, b history.Event) int { return int(a.At - b.At) }) {
		t.Fatal("the lines are not in the order of their times")
	}
	return events
}

func millis(t *testing.T, word string) int64 {
	t.Helper()
	ms, err := strconv.ParseFloat(word, 64)
	if err != nil {
		t.Fatal(err)
	}
	return int64(ms * 1e6)
}

func set(t *testing.T, e *history.Event, word string) {
	t.Helper()
	name, value, _ := strings.Cut(word, "=")
	duration := func() time.Duration {
		d, err := time.ParseDuration(value)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	number := func() int {
		n, err := strconv.Atoi(value)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	switch name {
	case "lease":
		e.Lease = duration()
	case "wait":
		e.Wait = duration()
	case "rate":
		e.Rate = duration()
	case "deadline":
		e.Deadline = 1000 + millis(t, value)
	case "since":
		e.Since = 1000 + millis(t, value)
	case "limit":
		e.Limit = number()
	case "permits":
		e.Permits = number()
	case "n":
		e.N = number()
	case "token":
		e.Token = int64(number())
	case "owner":
		e.Owner = value
	case "kind":
		e.Kind = value
	case "what":
		e.What = value
	case "error":
		e.Error = value
	case "keys":
		e.Keys = strings.Split(value, ",")
	case "servers":
		e.Servers = strings.Split(value, ",")
	case "procs":
		e.Procs = strings.Split(value, ",")
	case "elements":
		e.Elements = strings.Split(value, ",")
	default:
		t.Fatalf("%q is unknown", word)
	}
}

// judge checks a history that is not asked to have been busy.
func judge(t *testing.T, text string) *check.Result {
	t.Helper()
	return check.Check(play(t, text), check.Options{Share: -1})
}

// rules are those that were broken, each once.
func rules(r *check.Result) string {
	var all []string
	for _, v := range r.Violations {
		all = append(all, v.Rule)
	}
	slices.Sort(all)
	return strings.Join(slices.Compact(all), " ")
}

// A verdict is a history, and the rules that it breaks.
type verdict struct {
	name  string
	rules string
	text  string
}

func testVerdicts(t *testing.T, table []verdict) {
	t.Helper()
	for _, tt := range table {
		t.Run(tt.name, func(t *testing.T) {
			if r := judge(t, tt.text); rules(r) != tt.rules {
				t.Errorf("rules broken: %q, want %q\n%s", rules(r), tt.rules, r)
			}
		})
	}
}

// hold is a whole call for k without a wait.
func hold(proc string, from, to int) string {
	return fmt.Sprintf("%d %s ask 1 lock k\n%d %s enter 1\n%d %s exit 1\n%d %s released 1\n", from, proc, from, proc, to, proc, to, proc)
}
