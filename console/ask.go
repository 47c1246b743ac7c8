package console

import (
	"context"
	"strings"
	"time"

	"github.com/latchkey-go/latchkey/redisson"
)

const (
	mostAsked   = 1000            // locks that a filter has from Redis
	askTime     = 5 * time.Second // for one filter, at most; one that need not ask looks again after twice that
	askPatience = 500 * time.Millisecond
)

// mayAsk reports whether a text is one as Redis has it in its keys. A filter for a text that is not shown would reveal
// that the key is there.
func (h *handler) mayAsk(text string) bool { return text != "" && h.whole(pastedKey(text)) }

// ask returns the feed of a filter of open pages: nil while it may not ask Redis, and while the list has all locks. One
// asks at a time.
func (h *handler) ask(text string) *feed[*listState] {
	f, _ := h.asks.LoadOrStore(text, &feed[*listState]{
		read: func(ctx context.Context, last *listState, publish func(*listState)) (*listState, time.Duration) {
			if list, _ := h.list.fresh(ctx, askPatience, func(s *listState) bool { return s != nil && s.took > 0 }); list.enough() || !h.mayAsk(text) {
				return nil, 2 * askTime
			}
			h.asking.Lock()
			defer h.asking.Unlock()
			r := newReading(last, publish)
			h.askFor(ctx, r, pastedKey(text))
			return r.next, max(listRest, searchShare*r.next.took)
		},
		idle: func() { h.asks.Delete(text) },
	})
	return f.(*feed[*listState])
}

// whole reports whether all of a key is shown.
func (h *handler) whole(key string) bool { return h.show != nil && h.show(key) == key }

// enough reports whether a filter need not ask Redis: the list has all locks, or Redis does not answer.
func (s *listState) enough() bool {
	return s != nil && (s.failed != nil || !s.whole.IsZero() && s.total == len(s.rows))
}

// unglob has a text match itself in a pattern of Redis.
var unglob = strings.NewReplacer(`*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`, `\`, `\\`)

// askFor reads the lock with a key, and those whose keys begin with it. If there are more than mostAsked, or there is
// no time for all, total is one more than the rows.
func (h *handler) askFor(ctx context.Context, r *reading, key string) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	n := r.next
	if o, err := h.client.InspectKey(ctx, key); err == nil && o.Type != redisson.TypeNone && o.Type != redisson.TypeOther {
		r.add(o)
	}
	if r.last == nil { // or what was there before goes on being shown
		shown := *n
		r.publish(&shown)
	}
	for o, err := range h.client.Objects(ctx, unglob.Replace(key)+"*") {
		if len(n.rows) >= mostAsked || ctx.Err() != nil {
			n.total = 1
			break
		}
		if err != nil {
			n.failed = err
		} else if o.Key != key && h.whole(o.Key) {
			r.add(o)
		}
	}
	n.total += len(n.rows)
	n.took = max(time.Since(n.begun), 1)
}
