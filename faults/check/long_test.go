package check_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/faults/check"
	"github.com/latchkey-go/latchkey/faults/history"
)

// long is a history of many sections of a few keys, one after the other at each key, that all wait for each other.
func long(sections, keys int) (events []history.Event) {
	const step = int64(time.Millisecond)
	for i := range sections {
		at := int64(i/keys+1) * 10 * step
		base := history.Event{Proc: fmt.Sprint("p", i%7), Call: int64(i + 1)}
		note := func(op history.Op, at int64) history.Event {
			e := base
			e.Op, e.At = op, at+int64(i%keys)
			return e
		}
		ask := note(history.Ask, at-15*step)
		ask.Kind, ask.Keys, ask.Servers, ask.Lease, ask.Wait, ask.Owner = "lock", []string{fmt.Sprint("k", i%keys)}, []string{"s"}, time.Second, -1, fmt.Sprint(i)
		events = append(events, ask, note(history.Enter, at), note(history.Look, at+step), note(history.Exit, at+8*step), note(history.Released, at+11*step))
	}
	slices.SortStableFunc(events, func(a, b history.Event) int { return int(a.At - b.At) })
	return events
}

func TestLongHistoryIsJudgedWhole(t *testing.T) {
	const sections, keys = 20_000, 5
	r := check.Check(long(sections, keys), check.Options{})
	if want := keys * (sections/keys/32 - 1); !r.OK() || r.Sections != sections || r.Histories["reentrant"] != want || r.Undecided != 0 {
		t.Errorf("%d windows were checked, want %d\n%s", r.Histories["reentrant"], want, r)
	}
}

func TestModelFindsWhatOverlapsInALongHistory(t *testing.T) {
	events := long(500, 1)
	i := slices.IndexFunc(events, func(e history.Event) bool { return e.Call == 300 && e.Op == history.Exit })
	early := slices.IndexFunc(events, func(e history.Event) bool { return e.Call == 301 && e.Op == history.Enter })
	events[early].At = events[i].At - 1
	slices.SortStableFunc(events, func(a, b history.Event) int { return int(a.At - b.At) })
	r := check.Check(events, check.Options{Most: 100})
	if got := rules(r); got != "holders model" || r.Count != 3 {
		t.Errorf("rules broken: %q, %d times; want one clash, in two windows\n%s", got, r.Count, r)
	}
}

func TestModelsStopWhenTheirTimeIsOver(t *testing.T) {
	if r := check.Check(long(20_000, 5), check.Options{Models: time.Nanosecond}); r.Undecided == 0 {
		t.Errorf("a nanosecond was enough for %v", r.Histories)
	}
}

func BenchmarkCheck(b *testing.B) {
	events := long(100_000, 20)
	b.ReportAllocs()
	for b.Loop() {
		if r := check.Check(events, check.Options{Models: time.Minute}); !r.OK() {
			b.Fatal(r)
		}
	}
}
