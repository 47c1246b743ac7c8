package console

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/latchkey-go/latchkey/redisson"
)

const (
	listRest     = 2 * time.Second        // between two searches, at least
	listShare    = 4                      // a search rests for as many times as long as it took
	listRate     = 250                    // objects that are looked at a second, at most
	listPartial  = 500 * time.Millisecond // after which a search that goes on shows what it has found
	mostRows     = 20_000                 // kept in memory; more are only counted
	mostHolders  = 100                    // kept of a row, and of its queue
	firstPage    = 200                    // rows that are shown
	mostShown    = 2000
	patience     = 1500 * time.Millisecond // for a page that must show something
	recentEnough = listRest
)

// row is what the list keeps of an object. It is never changed.
type row struct {
	redisson.Object // with mostHolders and as many in its queue at most
	read            time.Time
	seen            time.Time // since when one of its holders has been seen to hold it, by a console that was looking
}

// listState is what the last search found.
type listState struct {
	rows   []row
	total  int // found, with those that are not among the rows
	begun  time.Time
	took   time.Duration // 0 for one that goes on
	failed error         // of a search: not all of Redis has answered
	since  time.Time     // when it failed for the first time
	whole  time.Time     // when a search succeeded last
}

// newListFeed is the one search for all who look at the list.
func newListFeed(client inspector) *feed[*listState] {
	return &feed[*listState]{read: func(ctx context.Context, last *listState, publish func(*listState)) (*listState, time.Duration) {
		s := newSearch(last)
		for o, err := range client.Objects(ctx, "") {
			s.add(o, err)
			if now := time.Now(); now.Sub(s.published) > listPartial {
				s.published = now
				publish(s.partial())
			}
			if ctx.Err() != nil {
				break
			}
		}
		next := s.end()
		return next, max(listRest, listShare*next.took, time.Duration(next.total)*time.Second/listRate)
	}}
}

// search collects what one search finds.
type search struct {
	last      *listState // nil for the first
	next      *listState
	seen      map[string]time.Time // of the last one: by key and holder
	published time.Time
}

func newSearch(last *listState) *search {
	now := time.Now()
	s := &search{last: last, next: &listState{begun: now}, seen: map[string]time.Time{}, published: now}
	if last != nil {
		s.next.whole, s.next.since = last.whole, last.since
		for _, r := range last.rows {
			for _, h := range r.Holders {
				s.seen[r.Key+"\x00"+h.ID] = r.seen
			}
		}
	}
	return s
}

func (s *search) add(o redisson.Object, err error) {
	n := s.next
	if err != nil {
		n.failed = cmp.Or(n.failed, err)
		return
	}
	n.total++
	if len(n.rows) == mostRows {
		return
	}
	r := row{Object: o, read: time.Now()}
	r.Holders = slices.Clone(o.Holders[:min(len(o.Holders), mostHolders)])
	r.Queue = slices.Clone(o.Queue[:min(len(o.Queue), mostHolders)])
	for _, h := range r.Holders {
		if seen, ok := s.seen[o.Key+"\x00"+h.ID]; ok && (r.seen.IsZero() || seen.Before(r.seen)) {
			r.seen = seen
		}
	}
	if r.seen.IsZero() {
		r.seen = r.read
	}
	n.rows = append(n.rows, r)
}

// partial is what there is to show of a search that goes on: what it found, or what the last one did if that was more.
func (s *search) partial() *listState {
	p := *s.next
	if s.last != nil && len(s.last.rows) > len(p.rows) {
		p.rows, p.total = s.last.rows, s.last.total
	}
	p.rows = slices.Clip(p.rows)
	return &p
}

func (s *search) end() *listState {
	n := s.next
	now := time.Now()
	n.took = max(now.Sub(n.begun), 1)
	switch {
	case n.failed == nil:
		n.whole, n.since = now, time.Time{}
	case n.since.IsZero():
		n.since = now
	}
	if n.failed != nil && n.total == 0 && s.last != nil {
		n.rows, n.total = s.last.rows, s.last.total // as it was
	}
	return n
}

// listBody is what the list's page shows.
type listBody struct {
	Query, Type, Sort string
	Types             []string
	Rows              []rowView
	Total, Matching   int
	More              int
	MoreLink          linkTo
	Sorts             map[string]linkTo
	Status            statusView
}

// listQuery is what the page's address says.
type listQuery struct {
	text, sort, kind string
	limit            int
}

func readListQuery(r *http.Request) listQuery {
	v := r.URL.Query()
	q := listQuery{text: v.Get("q"), sort: v.Get("sort"), kind: v.Get("type"), limit: firstPage}
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
	state, ok := h.list.fresh(r.Context(), patience, func(s *listState) bool { return time.Since(s.whole) < recentEnough })
	if !ok {
		state = nil
	}
	f := frame{Title: "Locks", Page: "./", Body: h.listBody(q, state), Stream: q.link("events").with("of", "list").URL(), Again: q.link("./").URL()}
	f.reload(r)
	h.render(w, http.StatusOK, "list", f)
}

func (h *handler) listBody(q listQuery, s *listState) listBody {
	b := listBody{Query: q.text, Type: q.kind, Sort: cmp.Or(q.sort, "key"), Sorts: map[string]linkTo{}}
	for _, by := range []string{"key", "seen", "left", "waiting"} {
		other := q
		other.sort = by
		b.Sorts[by] = other.link("./")
	}
	all := q
	all.limit = mostShown
	b.MoreLink = all.link("./")
	b.Types = kinds[:]
	b.Status = listStatus(s)
	if s == nil {
		return b
	}
	b.Total = s.total
	var found []candidate
	for i := range s.rows {
		if c := (candidate{&s.rows[i], printable(h.shown(s.rows[i].Key))}); q.matches(c) {
			found = append(found, c)
		}
	}
	slices.SortFunc(found, q.order)
	for _, c := range found[:min(len(found), q.limit)] {
		b.Rows = append(b.Rows, h.rowView(c.row))
	}
	b.Matching, b.More = len(found), len(found)-len(b.Rows)
	if q.text == "" && q.kind == "" {
		b.Matching, b.More = s.total, s.total-len(b.Rows)
	}
	return b
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

// matches looks at what is shown only: it must not tell more of a key than the page does.
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
	case "waiting":
		by = cmp.Compare(b.waiting(), a.waiting())
	}
	return cmp.Or(by, strings.Compare(a.shown, b.shown), strings.Compare(a.Key, b.Key))
}
