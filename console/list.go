package console

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/redisson"
)

const (
	firstPage  = 200 // rows that are shown
	mostShown  = 2000
	mostFilter = 4 << 10                 // bytes of the text to look for
	patience   = 1500 * time.Millisecond // for a page that must show something
)

// listBody is the content of the list's page.
type listBody struct {
	Query, Type, Sort string
	Types             []string
	Summary           summaryView
	Rows              []rowView
	Total, Listed     int // locks, and those of them that are kept
	Matching          int

	// Begin is the text for which a filter asks Redis; empty if it did not ask. Got and the
	// flags are about its answer.
	Begin               string
	Got                 int
	Asking, Cut, Failed bool

	More     int
	MoreLink linkTo
	Sorts    map[string]linkTo
	Status   statusView
}

// sorts are the columns by which the list can be sorted.
var sorts = []string{"key", "seen", "left", "waiting"}

// listQuery is the query of the page's address.
type listQuery struct {
	text, sort, kind string
	limit            int
}

// readListQuery leaves out what the page does not have: what it says is in many of its links.
func readListQuery(r *http.Request) listQuery {
	v := r.URL.Query()
	q := listQuery{text: v.Get("q"), sort: v.Get("sort"), kind: v.Get("type"), limit: firstPage}
	q.text = strings.ToValidUTF8(q.text[:min(len(q.text), mostFilter)], "")
	if !slices.Contains(sorts, q.sort) {
		q.sort = ""
	}
	if !slices.Contains(kinds[:], q.kind) {
		q.kind = ""
	}
	if v.Has("all") {
		q.limit = mostShown
	}
	return q
}

// link is the address of the list with q, as name.
func (q listQuery) link(name string) linkTo {
	l := link(name)
	if q.text != "" {
		l = l.with("q", q.text)
	}
	if q.kind != "" {
		l = l.with("type", q.kind)
	}
	if q.sort != "" {
		l = l.with("sort", q.sort)
	}
	if q.limit > firstPage {
		l = l.with("all", "1")
	}
	return l
}

func (h *handler) listPage(w http.ResponseWriter, r *http.Request) {
	q := readListQuery(r)
	state, _ := h.list.fresh(r.Context(), patience, func(s *listState) bool { return time.Since(s.whole) < s.rest })
	var asked *listState
	if !state.enough() && h.mayAsk(q.text) {
		asked, _ = h.ask(q.text).fresh(r.Context(), patience, func(s *listState) bool { return s == nil || s.took > 0 })
	}
	f := frame{Title: "Locks", Page: "./", Body: h.listBody(q, state, asked), Stream: q.link("events").with("of", "list").URL(), Again: q.link("./").URL()}
	f.reload(r)
	h.render(w, http.StatusOK, "list", f)
}

// listBody is the list as it was read, with what a filter has asked Redis for. Both may be nil.
func (h *handler) listBody(q listQuery, s, asked *listState) listBody {
	b := listBody{Query: q.text, Type: q.kind, Types: kinds[:], Sort: cmp.Or(q.sort, "waiting"), Sorts: map[string]linkTo{}, Status: listStatus(s)}
	for _, by := range sorts {
		other := q
		other.sort = by
		b.Sorts[by] = other.link("./")
	}
	all := q
	all.limit = mostShown
	b.MoreLink = all.link("./")
	s = cmp.Or(s, &listState{})
	b.Summary.Freed = int64(s.freed)
	if b.Summary.Guards = h.registry != nil; b.Summary.Guards {
		for info := range h.registry.All() {
			b.Summary.Lost += info.Outcomes[guard.OutcomeLost]
		}
	}
	b.Total, b.Listed, b.Summary.Held = s.total, len(s.rows), int64(s.total-len(s.rows)) // what is not listed
	found, listed := []candidate(nil), map[string]bool{}
	for i := range s.rows {
		b.Summary.add(&s.rows[i], s.now(&s.rows[i]))
		if c := (candidate{&s.rows[i], printable(h.shown(s.rows[i].Key))}); q.matches(c) {
			found, listed[c.Key] = append(found, c), true
		}
	}
	if asked != nil {
		b.Begin, b.Got = shorten(printable(pastedKey(q.text))), len(asked.rows)
		b.Asking, b.Cut, b.Failed = asked.took == 0, asked.total > len(asked.rows), asked.failed != nil
		for i := range asked.rows {
			if r := &asked.rows[i]; !listed[r.Key] && (q.kind == "" || q.kind == kindOf(&r.Object)) {
				found = append(found, candidate{r, printable(r.Key)})
			}
		}
	}
	slices.SortFunc(found, q.order)
	for _, c := range found[:min(len(found), q.limit)] {
		b.Rows = append(b.Rows, h.rowView(c.row, s.now(c.row)))
	}
	b.Matching, b.More = len(found), len(found)-len(b.Rows)
	if q.text == "" && q.kind == "" {
		b.Matching, b.More = s.total, s.total-len(b.Rows)
	}
	return b
}

// summaryView is all locks in three figures.
type summaryView struct {
	Held, Waiting, For int64 // locks that are held; how many wait, and for how many of them
	Oldest             span  // for how long one of those that are held was seen
	Freed, Lost        int64 // by hand, in the last hour; and by guards of this program, since it started
	Guards             bool
}

func (v *summaryView) add(r *row, now time.Time) {
	if n := r.waiting(); n > 0 {
		v.Waiting, v.For = v.Waiting+n, v.For+1
	}
	if r.HolderCount > 0 {
		v.Held++
		if age := now.Sub(r.seen); age.Milliseconds() >= v.Oldest.MS {
			v.Oldest = newSpan(age)
		}
	}
}

// now is as of when a row is shown: what was read stands still while Redis does not answer.
func (s *listState) now(r *row) time.Time {
	if s.failed != nil {
		return r.read
	}
	return time.Now()
}

// candidate is a row that may be shown, with its key as far as that is.
type candidate struct {
	*row
	shown string
}

// waiting is how many wait, as far as Redis knows.
func (r *row) waiting() int64 { return max(r.QueueLength, r.Listeners) }

// end is when the lease ends.
func (r *row) end() time.Time {
	if r.TTL < 0 {
		return r.read.AddDate(100, 0, 0)
	}
	return r.read.Add(r.TTL)
}

// matches looks only at text that is shown: it must not reveal more of a key than the page
// does.
func (q listQuery) matches(c candidate) bool {
	kind := kindOf(&c.Object)
	if q.kind != "" && q.kind != kind {
		return false
	}
	text := strings.ToLower(q.text)
	has := func(s string) bool { return strings.Contains(strings.ToLower(s), text) }
	hasWho := func(id string, who redisson.Identity) bool { return has(id) || has(who.Name) || has(who.Host) }
	return text == "" || has(c.shown) || has(kind) ||
		slices.ContainsFunc(c.Holders, func(h redisson.Holder) bool { return hasWho(h.ID, h.Who) }) ||
		slices.ContainsFunc(c.Queue, func(w redisson.Waiter) bool { return hasWho(w.ID, w.Who) })
}

func (q listQuery) order(a, b candidate) int {
	var by int
	switch q.sort {
	case "seen":
		by = a.seen.Compare(b.seen)
	case "left":
		by = a.end().Compare(b.end())
	case "", "waiting":
		by = cmp.Compare(b.waiting(), a.waiting())
	}
	return cmp.Or(by, strings.Compare(a.shown, b.shown), strings.Compare(a.Key, b.Key))
}
