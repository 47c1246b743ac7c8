package check

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/latchkey-go/latchkey/faults/history"
)

// forever is the end of what has not ended in a history.
const forever = math.MaxInt64

// A span is a time in ns of the history's clock, from included, to not.
type span struct{ from, to int64 }

func (s span) touches(o span) bool { return s.from < o.to && o.from < s.to }

// A fault is something that was done to servers, or to the processes that use them.
type fault struct {
	kind           string
	servers, procs []string
	span
}

// strikes reports whether the fault strikes a process in what it does at servers.
func (f fault) strikes(proc string, servers []string) bool {
	return (len(f.procs) == 0 || slices.Contains(f.procs, proc)) &&
		(len(f.servers) == 0 || slices.ContainsFunc(f.servers, func(s string) bool { return slices.Contains(servers, s) }))
}

// A timeline is a history, sorted by what its events are about.
type timeline struct {
	options    Options
	begin, end int64
	calls      []*call            // in the order of their requests
	byKey      map[string][]*call //
	stops      map[string][]span  // when processes were stopped; those within a grace of one another are one
	kills      map[string]int64   // when processes were killed
	delays     map[string][]span  // when processes had no processor
	losses     map[string][]span  // when servers lost their data
	faults     []fault
	healthy    []span // from a heal on until something is done again
	others     []history.Event
	result     *Result
}

// lay sorts the events, which are in the order of their times.
func lay(events []history.Event, o Options, r *Result) *timeline {
	t := &timeline{
		options: o, byKey: map[string][]*call{}, stops: map[string][]span{}, kills: map[string]int64{}, delays: map[string][]span{},
		losses: map[string][]span{}, result: r,
	}
	if len(events) > 0 {
		t.begin, t.end = events[0].At, events[len(events)-1].At
	}
	b := builder{t: t, calls: map[callID]*call{}, stopped: map[string]int64{}, faults: map[int]int{}}
	for _, e := range events {
		b.add(e)
	}
	b.close()
	return t
}

type callID struct {
	proc string
	id   int64
}

// A builder turns events into a timeline.
type builder struct {
	t       *timeline
	calls   map[callID]*call
	stopped map[string]int64 // since when
	faults  map[int]int      // the index of a fault, by its number
}

func (b *builder) add(e history.Event) {
	t := b.t
	switch e.Op {
	case history.Fault, history.Stop, history.Kill, history.DataLost:
		if n := len(t.healthy); n > 0 {
			t.healthy[n-1].to = min(t.healthy[n-1].to, e.At)
		}
	}
	switch e.Op {
	case history.Start:
	case history.Fault:
		b.faults[e.ID] = len(t.faults)
		t.faults = append(t.faults, fault{kind: e.What, servers: e.Servers, procs: e.Procs, span: span{e.At, forever}})
	case history.Healed:
		if i, ok := b.faults[e.ID]; ok {
			t.faults[i].to = e.At
		} else {
			t.violation("log", "%s: fault %d is healed and never began", where(e), e.ID)
		}
	case history.Stop:
		for _, p := range e.Procs {
			b.stopped[p] = e.At
		}
	case history.Delayed:
		t.delays[e.Proc] = append(t.delays[e.Proc], span{e.Since, e.At})
		t.result.Delayed = max(t.result.Delayed, time.Duration(e.At-e.Since))
	case history.Cont:
		b.cont(e)
	case history.Kill:
		for _, p := range e.Procs {
			t.kills[p] = e.At
		}
	case history.DataLost:
		for _, s := range e.Servers {
			t.losses[s] = append(t.losses[s], span{cmp.Or(e.Since, e.At), e.At + 1})
		}
	case history.Heal:
		t.healthy = append(t.healthy, span{e.At, forever})
	case history.Set, history.Count, history.Leftover, history.Final:
		t.others = append(t.others, e)
	default:
		b.call(e)
	}
}

func (b *builder) cont(e history.Event) {
	for _, p := range e.Procs {
		if from, ok := b.stopped[p]; ok {
			delete(b.stopped, p)
			b.pause(p, span{from, e.At})
		}
	}
}

// pause notes that a process was stopped. It joins a stop that has just ended: nobody can notice much in between.
func (b *builder) pause(proc string, s span) {
	all := b.t.stops[proc]
	if n := len(all); n > 0 && s.from-all[n-1].to < int64(b.t.options.Grace) {
		all[n-1].to = s.to
		return
	}
	b.t.stops[proc] = append(all, s)
}

func (b *builder) call(e history.Event) {
	id := callID{e.Proc, e.Call}
	c := b.calls[id]
	if e.Op == history.Ask && c == nil {
		c = &call{ask: e}
		c.ask.Owner = cmp.Or(e.Owner, fmt.Sprintf("%s/%d", e.Proc, e.Worker))
		c.ask.Permits = max(1, e.Permits)
		if e.Lease <= 0 && c.class() != open && e.Kind != "semaphore" {
			b.t.violation("log", "%s: call %d has no lease", where(e), e.Call)
		}
		b.calls[id] = c
		b.t.calls = append(b.t.calls, c)
		for _, k := range e.Keys {
			b.t.byKey[k] = append(b.t.byKey[k], c)
		}
		return
	}
	if c == nil || e.Op == history.Ask || !c.take(e) {
		b.t.violation("log", "%s: %s of call %d has no place there", where(e), e.Op, e.Call)
	}
}

// close ends what is still open: stops with the history, sections with their processes.
func (b *builder) close() {
	t := b.t
	for p, from := range b.stopped {
		b.pause(p, span{from, forever})
	}
	for _, c := range t.calls {
		kill, killed := t.kills[c.ask.Proc]
		switch {
		case c.entered == 0:
		case killed && (c.left == 0 || c.left > kill):
			c.left, c.leftBy = max(c.entered, kill), history.Kill
		case c.left == 0:
			c.left = t.end
		}
	}
}

// awayFor is how long within s a process was stopped, with the time that it may take to notice, or had no processor. A ticker of a
// stopped process is late, too: what is both counts once.
func (t *timeline) awayFor(proc string, s span) (d time.Duration) {
	away := slices.Clone(t.delays[proc])
	for _, o := range t.stops[proc] {
		away = append(away, span{o.from, min(o.to, forever-int64(t.options.Grace)) + int64(t.options.Grace)})
	}
	slices.SortFunc(away, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	at := s.from
	for _, o := range away {
		if from, to := max(at, o.from), min(s.to, o.to); from < to {
			d += time.Duration(to - from)
			at = to
		}
	}
	return d
}

// killed is when a process was killed, and forever if it was not.
func (t *timeline) killed(proc string) int64 {
	if at, ok := t.kills[proc]; ok {
		return at
	}
	return forever
}

// at is a time of the history for a reader.
func (t *timeline) at(ns int64) string {
	if ns == forever {
		return "never"
	}
	return fmt.Sprintf("%.6fs", time.Duration(ns-t.begin).Seconds())
}

// where is the line of an event.
func where(e history.Event) string { return fmt.Sprintf("%s.log:%d", e.Proc, e.Line) }

// names joins the keys of a call.
func names(keys []string) string { return strings.Join(keys, "+") }
