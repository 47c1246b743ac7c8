package console

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/redisson"
	"github.com/redis/go-redis/v9"
)

// manyLocks are more than the list keeps, without those that are looked for.
const manyLocks = 25_000

func writeLocks(t *testing.T, rdb redis.UniversalClient, keys ...string) {
	t.Helper()
	pipe := rdb.Pipeline()
	for i, key := range keys {
		pipe.HSet(t.Context(), key, fmt.Sprintf("6ba7b810-9dad-41d1-80b4-%012d:%d", i%50, i), 1)
		pipe.PExpire(t.Context(), key, time.Hour)
	}
	if _, err := pipe.Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// whole is the list when the first search has ended.
func whole(t *testing.T, s *httptest.Server) answered {
	t.Helper()
	for {
		if a := get(t, s.URL+"/"); strings.Contains(a.body, "Read at") {
			return a
		}
		<-time.After(100 * time.Millisecond)
	}
}

// Of more locks than the list keeps, it keeps those that are waited for, and a filter finds the others.
func TestFilterAmongManyLocks(t *testing.T) {
	_, rdb := filled(t, 0, false)
	var keys []string
	for i := range manyLocks {
		keys = append(keys, fmt.Sprintf("bulk:%05d", i))
	}
	for i := range 11 {
		keys = append(keys, fmt.Sprintf("order:4%d", i))
	}
	writeLocks(t, rdb, append(keys, "till:9", "star*1", "star1", "sealed")...)
	queue := []any{clientA + ":1", clientA + ":2", clientB + ":1"}
	if err := rdb.RPush(t.Context(), "redisson_lock_queue:{till:9}", queue...).Err(); err != nil {
		t.Fatal(err)
	}
	s := consoleOf(t, rdb)
	list := whole(t, s)
	if links := lockLinks(list.body); len(links) != firstPage || links[0] != "lock?key=till%3A9" {
		t.Errorf("%d rows, the first %.1q, want the one that is waited for", len(links), links)
	}
	list.wants(t, "list", http.StatusOK, "25,015 locks", "20,000 of 25,015 locks are listed: those with waiters and the oldest.",
		`25,015</dd>`, `3</a> <span class="note">for 1 lock<`)
	for query, want := range map[string]string{
		"order:4":    "11 of 25,015 locks",
		"bulk:1234":  "10 of 25,015 locks",
		"sealed":     "1 of 25,015 locks",
		"star*":      "1 of 25,015 locks",
		"bulk:24999": "1 of 25,015 locks",
		"bulk:2":     "1,000",
		"nowhere":    "No lock matches among those that are listed.",
	} {
		a := get(t, s.URL+"/?q="+strings.ReplaceAll(query, "*", "%2A"))
		a.wants(t, query, http.StatusOK, want, "The filter asked Redis for keys that begin with “<bdi>"+query+"</bdi>”")
		next, _ := live(t, s, "events?of=list&q="+strings.ReplaceAll(query, "*", "%2A"))
		if part := next(); !strings.Contains(part, want) && !strings.Contains(next(), want) {
			t.Errorf("%s: the live view lacks %q", query, want)
		}
	}
}

// asking counts what is asked beside the list.
type asking struct {
	*fakeRedis
	asked atomic.Int64
}

func (a *asking) InspectKey(ctx context.Context, key string) (redisson.Object, error) {
	a.asked.Add(1)
	return a.fakeRedis.InspectKey(ctx, key)
}

func (a *asking) Objects(ctx context.Context, pattern string, opts ...redisson.SearchOption) iter.Seq2[redisson.Object, error] {
	if pattern != "" {
		a.asked.Add(1)
	}
	return a.fakeRedis.Objects(ctx, pattern, opts...)
}

// A filter asks Redis for nothing where keys are not shown whole: its answer would tell which there are.
func TestFilterTellsNoKeys(t *testing.T) {
	f := &asking{fakeRedis: newFake()}
	for i := range mostRows + 1 {
		f.put(heldLock(fmt.Sprintf("order:%05d", i), fmt.Sprintf("%s:%d", clientA, i)))
	}
	for _, opt := range []Option{ShowKeys(nil), ShowKeys(func(key string) string { return key[:min(len(key), 3)] })} {
		s := serve(t, f, opt)
		whole(t, s).wants(t, "list", http.StatusOK, "20,000 of 20,001 locks are listed")
		get(t, s.URL+"/?q=order:00007").wants(t, "filter", http.StatusOK, "No lock matches among those", "The filter looks at these.")
		if n := f.asked.Load(); n > 0 {
			t.Errorf("%d questions for a key that is not shown", n)
		}
	}
}

// What is kept of too many is what is waited for, and what was seen longest, also with the next search.
func TestListKeepsTheOldest(t *testing.T) {
	f := newFake()
	l := &lister{client: f}
	f.put(heldLock("zz:old", clientA+":1"))
	last, _ := l.read(t.Context(), nil, func(*listState) {})
	for i := range 2 * mostRows {
		f.put(heldLock(fmt.Sprintf("order:%05d", i), fmt.Sprintf("%s:%d", clientA, i+2)))
	}
	waited := heldLock("zz:waited", clientB+":1")
	waited.Listeners = 2
	f.put(waited)
	l.due = time.Time{}
	last, _ = l.read(t.Context(), last, func(*listState) {})
	kept := map[string]bool{}
	for _, r := range last.rows {
		kept[r.Key] = true
	}
	if len(last.rows) != mostRows || last.total != 2*mostRows+2 || !kept["zz:old"] || !kept["zz:waited"] {
		t.Errorf("%d of %d are kept, the oldest: %v, the one that is waited for: %v", len(last.rows), last.total, kept["zz:old"], kept["zz:waited"])
	}
}

// While a filter asks again, what it had before is shown.
func TestFilterKeepsWhatItHas(t *testing.T) {
	h, err := newHandler(newFake(heldLock("order:1", clientA+":1"), heldLock("order:2", clientA+":2")), nil, []Option{quiet, ShowKeys(Whole)})
	if err != nil {
		t.Fatal(err)
	}
	shown := 0
	r := newReading(nil, func(*listState) { shown++ })
	h.askFor(t.Context(), r, "order:1")
	if len(r.next.rows) != 2 || r.next.total != 2 || shown != 1 {
		t.Errorf("%d of %d locks, shown %d times before the end; want 2 of 2, once, with the one that is there at once", len(r.next.rows), r.next.total, shown)
	}
	h.askFor(t.Context(), newReading(r.next, func(*listState) { shown++ }), "order:1")
	if shown != 1 {
		t.Error("the second time, less is shown for a while")
	}
}
