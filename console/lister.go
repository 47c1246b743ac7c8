package console

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/latchkey-go/latchkey/redisson"
)

const (
	listRest    = 2 * time.Second        // between two readings, at least
	listPace    = 4                      // questions a second on average, at most, beside the scripts with SCAN
	searchShare = 9                      // between two searches there are so many times as long as one took
	listFailed  = 10 * time.Second       // after a reading that failed, at most
	listPartial = 500 * time.Millisecond // after which a search that goes on shows what it has found
	mostRows    = 20_000                 // kept in memory, of those with waiters and the oldest; more are only counted
	mostHolders = 100                    // kept of a row, and of its queue
)

// row is the list's record of an object. It is never changed.
type row struct {
	redisson.Object // with mostHolders and as many in its queue at most
	read            time.Time
	seen            time.Time // since when one of its holders holds it, as it says, or has been seen to by a console that was looking
}

// listState is the result of the last reading.
type listState struct {
	rows     []row
	total    int // found, with those that are not among the rows
	begun    time.Time
	progress redisson.Progress // of a search that goes on
	took     time.Duration     // by the last search; 0 for one that goes on
	searched time.Time         // when a search succeeded last
	whole    time.Time         // when all was read last: by a search, or those again that it had found
	failed   error             // not all of Redis has answered
	since    time.Time         // when it failed for the first time
	rest     time.Duration     // until the next reading
	freed    int               // by hand, lately
}

// lister reads the list for all who look at it. It searches Redis for locks, and reads those again that it has found until it is time for
// the next search: that goes through all keys, which can be very many.
type lister struct {
	client inspector
	due    time.Time // the next search
}

func newListFeed(client inspector) *feed[*listState] {
	l := &lister{client: client}
	return &feed[*listState]{read: l.read}
}

func (l *lister) read(ctx context.Context, last *listState, publish func(*listState)) (*listState, time.Duration) {
	r := newReading(last, publish)
	n := r.next
	if last == nil || !time.Now().Before(l.due) {
		r.search(ctx, l.client)
		if frees, err := l.client.Frees(ctx, mostFrees); err == nil { // or it is not known
			n.freed = slices.IndexFunc(append(frees, redisson.Freed{}), func(f redisson.Freed) bool { return time.Since(f.Time) > lately })
		}
		l.due = time.Now().Add(searchShare * n.took)
	} else {
		r.again(ctx, l.client)
	}
	if len(n.rows) == 0 { // to be read again
		n.rest = time.Until(l.due)
	}
	if n.failed != nil { // which may be because Redis is busy
		l.due, n.rest = time.Time{}, 0
		if n.progress.Keys > 0 { // it has answered, and may be busy
			n.rest = min(searchShare*n.took, listFailed)
		}
	}
	n.rest = max(n.rest, listRest, time.Duration(n.progress.Questions)*time.Second/listPace)
	return n, n.rest
}

// reading is one of the list.
type reading struct {
	last    *listState // nil for the first
	next    *listState
	seen    map[string]time.Time // of the last one: by key and holder
	publish func(*listState)
	shown   time.Time // when something was published
}

func newReading(last *listState, publish func(*listState)) *reading {
	now := time.Now()
	r := &reading{last: last, next: &listState{begun: now}, seen: map[string]time.Time{}, publish: publish, shown: now}
	if last != nil {
		r.next.searched, r.next.whole, r.next.since, r.next.freed = last.searched, last.whole, last.since, last.freed
		for _, row := range last.rows {
			for _, h := range row.Holders {
				r.seen[row.Key+"\x00"+h.ID] = row.seen
			}
		}
	}
	return r
}

// search finds all objects.
func (r *reading) search(ctx context.Context, client inspector) {
	n := r.next
	for o, err := range client.Objects(ctx, "", redisson.OnProgress(r.progress)) {
		if err != nil {
			n.failed = cmp.Or(n.failed, err)
			continue
		}
		r.add(o)
		n.total++
		r.show()
	}
	n.took = max(time.Since(n.begun), 1)
	r.end()
	if n.failed == nil {
		n.searched = n.whole
	}
	if n.failed != nil && n.total == 0 && r.last != nil {
		n.rows, n.total = r.last.rows, r.last.total // as it was
	}
}

// again reads those objects that were found before.
func (r *reading) again(ctx context.Context, client inspector) {
	n, before := r.next, map[string]*row{}
	n.took, n.total = r.last.took, r.last.total
	var keys []string
	for i := range r.last.rows {
		row := &r.last.rows[i]
		before[row.Key] = row
		keys = append(keys, row.Key)
	}
	for o, err := range client.InspectKeys(ctx, keys, redisson.OnProgress(r.progress)) {
		row := before[o.Key]
		if row == nil || err != nil {
			n.failed = cmp.Or(n.failed, err)
			continue
		}
		delete(before, o.Key)
		if o.Type == row.Type || freeable(&o) {
			r.add(o)
		} else {
			n.total--
		}
	}
	for _, row := range before { // what has not answered is as it was
		n.rows = append(n.rows, *row)
	}
	r.end()
}

func (r *reading) add(o redisson.Object) {
	n := r.next
	row := row{Object: o, read: time.Now()}
	row.Holders = slices.Clone(o.Holders[:min(len(o.Holders), mostHolders)])
	row.Queue = slices.Clone(o.Queue[:min(len(o.Queue), mostHolders)])
	for _, h := range row.Holders {
		seen := r.seen[o.Key+"\x00"+h.ID]
		if h.About != nil && !h.About.Since.IsZero() {
			seen = h.About.Since
		}
		if !seen.IsZero() && (row.seen.IsZero() || seen.Before(row.seen)) {
			row.seen = seen
		}
	}
	if row.seen.IsZero() {
		row.seen = row.read
	}
	if n.rows = append(n.rows, row); len(n.rows) > mostRows+mostRows/4 {
		r.cut()
	}
}

// cut leaves those rows that are waited for most, and then the oldest. The state that was published has the others
// still.
func (r *reading) cut() {
	rows := slices.Clone(r.next.rows)
	slices.SortFunc(rows, func(a, b row) int {
		return cmp.Or(cmp.Compare(b.waiting(), a.waiting()), a.seen.Compare(b.seen), strings.Compare(a.Key, b.Key))
	})
	r.next.rows = slices.Clone(rows[:min(len(rows), mostRows)])
}

func (r *reading) progress(p redisson.Progress) {
	r.next.progress = p
	if r.next.took == 0 {
		r.show()
	}
}

// show publishes a search that goes on: the locks that it has found, or those of the last one if they were more.
func (r *reading) show() {
	now := time.Now()
	if now.Sub(r.shown) < listPartial {
		return
	}
	r.shown = now
	p := *r.next
	if r.last != nil && r.last.total > p.total {
		p.rows, p.total = r.last.rows, r.last.total
	}
	p.rows = slices.Clip(p.rows)
	r.publish(&p)
}

// end notes whether all was read.
func (r *reading) end() {
	n, now := r.next, time.Now()
	if len(n.rows) > mostRows {
		r.cut()
	}
	switch {
	case n.failed == nil:
		n.whole, n.since = now, time.Time{}
	case n.since.IsZero():
		n.since = now
	}
}
