package console

import (
	"context"
	"errors"
	"html/template"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/redisson"
)

// silence is the longest pause of a holder that renews its lease, by default once in ten seconds.
const silence = 12 * time.Second

// lockRest is the time between two looks at a lock whose page is open.
const lockRest = time.Second

// lockState is the state of one lock.
type lockState struct {
	object redisson.Object
	seen   map[string]time.Time // since when each holder holds it, as far as was seen
	read   time.Time            // zero if Redis has not answered yet
	failed error
	since  time.Time // when it failed for the first time
	circle []string  // of locks that wait for each other
}

// lockFeeds are those of the locks whose pages are open.
type lockFeeds struct {
	mu    sync.Mutex
	feeds map[string]*feed[*lockState]
}

// lockFeed is the feed for all who look at a lock.
func (h *handler) lockFeed(key string) *feed[*lockState] {
	h.locks.mu.Lock()
	defer h.locks.mu.Unlock()
	f := h.locks.feeds[key]
	if f == nil {
		f = &feed[*lockState]{}
		f.read = func(ctx context.Context, last *lockState, _ func(*lockState)) (*lockState, time.Duration) {
			return h.readLock(ctx, key, last), lockRest
		}
		f.idle = func() {
			h.locks.mu.Lock()
			defer h.locks.mu.Unlock()
			if h.locks.feeds[key] == f {
				delete(h.locks.feeds, key)
			}
		}
		h.locks.feeds[key] = f
	}
	return f
}

func (h *handler) readLock(ctx context.Context, key string, last *lockState) *lockState {
	o, err := h.client.InspectKey(ctx, key)
	if err != nil {
		s := lockState{failed: err, since: time.Now()}
		if last != nil {
			s.object, s.seen, s.read, s.circle = last.object, last.seen, last.read, last.circle
			if last.failed != nil {
				s.since = last.since
			}
		}
		return &s
	}
	o.Holders = slices.Clone(o.Holders) // renewals are noted in it
	s := &lockState{object: o, read: time.Now(), seen: make(map[string]time.Time, len(o.Holders))}
	before := h.seenBefore(key, last)
	for _, holder := range o.Holders {
		s.seen[holder.ID] = s.read
		if at, ok := before[holder.ID]; ok {
			s.seen[holder.ID] = at
		}
		if holder.About != nil && !holder.About.Since.IsZero() {
			s.seen[holder.ID] = holder.About.Since
		}
	}
	s.renewals(last)
	s.circle = Deadlock(ctx, h.client.InspectKey, o)
	return s
}

// renewals notes of holders that say nothing of it when this page has seen them renew their lease: it was longer than it could be otherwise.
func (s *lockState) renewals(last *lockState) {
	if last == nil {
		return
	}
	for i := range s.object.Holders {
		h := &s.object.Holders[i]
		at := slices.IndexFunc(last.object.Holders, func(o redisson.Holder) bool { return o.ID == h.ID })
		if at < 0 || !h.Renewed.IsZero() {
			continue
		}
		if was := &last.object.Holders[at]; was.Lease > 0 && h.Lease > was.Lease-s.read.Sub(last.read)+lockRest/2 {
			h.Renewed, h.Who.Watchdog = s.read, h.Lease
		} else {
			h.Renewed, h.Who.Watchdog = was.Renewed, was.Who.Watchdog
		}
	}
}

// seenBefore is what the page, or before it the list, has seen.
func (h *handler) seenBefore(key string, last *lockState) map[string]time.Time {
	if last != nil && last.seen != nil {
		return last.seen
	}
	before := map[string]time.Time{}
	list, _, _ := h.list.look()
	if list == nil {
		return before
	}
	if i := slices.IndexFunc(list.rows, func(r row) bool { return r.Key == key }); i >= 0 {
		for _, holder := range list.rows[i].Holders {
			before[holder.ID] = list.rows[i].seen
		}
	}
	return before
}

// lockLink is a page of the lock with that key: with the key itself in the link, if all of it is shown.
func (h *handler) lockLink(page, key string) linkTo {
	if h.show != nil && h.show(key) == key {
		return link(page).with("key", key)
	}
	return link(page).with("ref", h.keys.close(key))
}

var (
	errNoKey   = errors.New("no key")
	errLongKey = errors.New("a key that is too long")
)

// mostKey is how long a key in a link may be, in bytes: the page has it in several places.
const mostKey = 64 << 10

// keyOf is the key that a form or a link means.
func (h *handler) keyOf(value func(string) string) (string, error) {
	if ref := value("ref"); ref != "" {
		return h.keys.open(ref)
	}
	switch key := value("key"); {
	case key == "":
		return "", errNoKey
	case len(key) > mostKey:
		return "", errLongKey
	default:
		return key, nil
	}
}

// wrongLink answers a link that means no key.
func (h *handler) wrongLink(w http.ResponseWriter, err error) {
	if errors.Is(err, errSeal) {
		h.problem(w, http.StatusNotFound, "This link is from another process",
			"Keys are not shown whole here, so links to them are good for the process that made them. Look the lock up in the list.")
		return
	}
	if errors.Is(err, errLongKey) {
		h.problem(w, http.StatusBadRequest, "Which lock?", "This key is too long for a page. The command line takes it: latchkey show.")
		return
	}
	h.problem(w, http.StatusBadRequest, "Which lock?", "The link names no key.")
}

// lockBody is the content of the page of a lock.
type lockBody struct {
	Key         keyView
	Kind        string
	Exists      bool
	Why         string
	Holders     []holderView
	MoreHolders int64
	Queue       []holderView
	MoreQueue   int64
	Listeners   int64
	Token       int64
	Permits     int64
	HasPermits  bool
	Left        span
	Guards      []string
	Circle      []keyLink
	Free        template.URL // where to free it, if this visitor may
	ReadOnly    bool
	Status      statusView
	Freed       string // when, by this visitor, a moment ago
}

func (h *handler) lockPage(w http.ResponseWriter, r *http.Request) {
	key, err := h.keyOf(r.URL.Query().Get)
	if err != nil {
		h.wrongLink(w, err)
		return
	}
	freed, since := h.freedAt(key, r.URL.Query().Get("freed")), time.Now().Add(-lockRest)
	if !freed.IsZero() { // what was read before is no longer true
		since = time.Now()
	}
	state, ok := h.lockFeed(key).fresh(r.Context(), patience, func(s *lockState) bool { return s.read.After(since) })
	if !ok {
		state = &lockState{failed: context.DeadlineExceeded, since: time.Now()}
	}
	body := h.lockBody(key, state, h.mayFree(r) == nil)
	if !freed.IsZero() {
		body.Freed = freed.Format(time.TimeOnly)
	}
	f := frame{
		Title: h.keyView(key).Text, Body: body,
		Stream: h.lockLink("events", key).with("of", "lock").URL(), Again: h.lockLink("lock", key).URL(),
	}
	f.reload(r)
	h.render(w, http.StatusOK, "lock", f)
}

func (h *handler) lockBody(key string, s *lockState, mayFree bool) lockBody {
	o := &s.object
	b := lockBody{
		Key: h.keyView(key), Kind: kindOf(o), Exists: o.Type != redisson.TypeNone, Listeners: o.Listeners, Token: o.Token,
		Permits: o.Permits, HasPermits: hasPermits(o.Type), Left: leftSpan(o.TTL, s.read), Status: s.status(), Why: why(s),
	}
	for _, one := range o.Holders {
		v := who(one.ID, one.Client, one.Who)
		v.Count, v.Write, v.Left, v.Seen = one.Count, one.Write, leftSpan(one.Lease, s.read), newSpan(max(0, time.Since(s.seen[one.ID])))
		if v.Sign, v.Silent = Sign(&one, s.read); v.Sign == "" && one.About == nil && s.read.Sub(s.seen[one.ID]) >= silence {
			v.Sign = "not seen to be renewed for " + spanText(s.read.Sub(s.seen[one.ID]))
		}
		if one.About != nil {
			v.For, v.Trace, v.Waits = printable(one.About.For), printable(one.About.Trace), h.keyLinks(one.About.Waits)
		}
		b.Holders = append(b.Holders, v)
	}
	b.Holders, b.MoreHolders = first(b.Holders, o.HolderCount)
	for _, one := range o.Queue {
		v := who(one.ID, one.Client, one.Who)
		if !one.Until.IsZero() {
			v.Left = newSpan(max(0, time.Until(one.Until)))
		}
		b.Queue = append(b.Queue, v)
	}
	b.Queue, b.MoreQueue = first(b.Queue, o.QueueLength)
	b.Circle = h.keyLinks(s.circle)
	if h.registry != nil {
		b.Guards = h.registry.Match(key)
	}
	if freeable(o) {
		if b.ReadOnly = !mayFree; mayFree {
			b.Free = h.lockLink("free", key).URL()
		}
	}
	return b
}

const mostListed = 100

// first cuts a list, and says how many of total are missing then.
func first(all []holderView, total int64) ([]holderView, int64) {
	shown := all[:min(len(all), mostListed)]
	return shown, max(total, int64(len(all))) - int64(len(shown))
}

// freeable reports whether there is something to free: a lock that is held.
func freeable(o *redisson.Object) bool {
	return (o.Type == redisson.TypeLock || o.Type == redisson.TypeReadWrite) && len(o.Holders) > 0
}

func (s *lockState) status() statusView {
	if s.failed == nil {
		return statusView{Text: "Read at " + s.read.Format(time.TimeOnly) + "."}
	}
	text := "Redis does not answer since " + s.since.Format(time.TimeOnly) + "."
	if !s.read.IsZero() {
		text += " What is below was true at " + s.read.Format(time.TimeOnly) + "."
	}
	return statusView{Text: text, Bad: true, Error: errorText(s.failed), Stale: asOf(s.read)}
}

// freedAt is when the visitor freed the lock with that key, if the link says so, and this console has made it a moment ago.
func (h *handler) freedAt(key, sealed string) (at time.Time) {
	text, err := h.keys.open(sealed)
	when, of, _ := strings.Cut(text, " ")
	if at, err2 := time.Parse(time.RFC3339, when); err == nil && err2 == nil && of == key && time.Since(at) < time.Minute {
		return at
	}
	return time.Time{}
}
