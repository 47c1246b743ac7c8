package sim

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// Trace lists the events of a run, in the order of the virtual time. Things of one instant are sorted by
// their text.
type Trace struct {
	mu      sync.Mutex
	entries []entry
}

type entry struct {
	at   time.Duration
	text string
}

func (t *Trace) add(at time.Duration, text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.entries = append(t.entries, entry{at, text})
}

func (t *Trace) sort() {
	t.mu.Lock()
	defer t.mu.Unlock()
	slices.SortStableFunc(t.entries, func(a, b entry) int {
		if a.at != b.at {
			return int(a.at - b.at)
		}
		return strings.Compare(a.text, b.text)
	})
}

// WriteTo writes a line for each entry.
func (t *Trace) WriteTo(w io.Writer) (written int64, err error) {
	t.sort()
	for _, e := range t.entries {
		n, err := fmt.Fprintf(w, "%15d %s\n", e.at, e.text)
		written += int64(n)
		if err != nil {
			return written, err
		}
	}
	return written, nil
}

// Sum is a digest of the trace.
func (t *Trace) Sum() string {
	h := sha256.New()
	_, _ = t.WriteTo(h)
	return hex.EncodeToString(h.Sum(nil))[:16]
}

// Note adds a line to the trace.
func (n *Network) Note(format string, args ...any) {
	n.trace.add(n.Since(), fmt.Sprintf(format, args...))
}

// note is Note for what happens on the wire. The mutex is held.
func (n *Network) note(client int, verb, what, end string) {
	who := "server"
	if client >= 0 {
		who = string(rune('A' + client))
	}
	n.trace.add(n.Since(), strings.TrimRight(who+" "+verb+" "+what+" "+end, " "))
}

// Trace returns the events so far.
func (n *Network) Trace() *Trace { return &n.trace }

// Reach counts that something has happened that tests want to have seen.
func (n *Network) Reach(what string) {
	n.tally.mu.Lock()
	defer n.tally.mu.Unlock()
	if n.tally.counts == nil {
		n.tally.counts = map[string]int{}
	}
	n.tally.counts[what]++
}

// Reached returns how often each thing has happened.
func (n *Network) Reached() map[string]int {
	n.tally.mu.Lock()
	defer n.tally.mu.Unlock()
	return maps.Clone(n.tally.counts)
}

// tally counts what has happened.
type tally struct {
	mu     sync.Mutex
	counts map[string]int
}
