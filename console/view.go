package console

import (
	"cmp"
	"fmt"
	"html/template"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/latchkey-go/latchkey/redisson"
)

// linkTo is a relative link. Its query has any bytes, escaped.
type linkTo string

func link(name string) linkTo { return linkTo(name) }

func (l linkTo) with(name, value string) linkTo {
	sep := "?"
	if strings.Contains(string(l), "?") {
		sep = "&"
	}
	return l + linkTo(sep+name+"="+url.QueryEscape(value))
}

// URL is safe in a page: with makes it of escaped texts only.
func (l linkTo) URL() template.URL { return template.URL(l) } //nolint:gosec // see above

// keyView is a key as far as it is shown.
type keyView struct {
	Text   string // shortened
	Shown  string // what Text is short for
	Bytes  int    // of a key that was shortened; 0 otherwise
	Hidden bool   // Shown is not the key
}

const (
	longText  = 120
	longStart = 80
	longEnd   = 30
)

func (h *handler) keyView(key string) keyView {
	shown := h.shown(key)
	v := keyView{Shown: printable(shown), Hidden: shown != key}
	v.Text = shorten(v.Shown)
	if v.Text != v.Shown {
		v.Bytes = len(key)
	}
	return v
}

// shown is key as ShowKeys says.
func (h *handler) shown(key string) string {
	if h.show != nil {
		return h.show(key)
	}
	if i := strings.IndexAny(key, ":/.#{"); i >= 0 && i < longEnd {
		return key[:i+1] + "… " + h.keys.mark(key)
	}
	return "… " + h.keys.mark(key)
}

// printable is s as it is if all of it can be seen, and quoted as in Go otherwise: control characters, broken UTF-8, what has
// no width or turns the direction of writing.
func printable(s string) string {
	if quoted := strconv.Quote(s); strings.ReplaceAll(quoted, `\"`, `"`) != `"`+s+`"` {
		return quoted
	}
	return s
}

// shorten leaves out the middle of a long text.
func shorten(s string) string {
	if utf8.RuneCountInString(s) <= longText {
		return s
	}
	runes := []rune(s)
	return string(runes[:longStart]) + " … " + string(runes[len(runes)-longEnd:])
}

// span is a time for people and for the script that lets it run: up, or down to 0.
type span struct {
	Text string
	MS   int64 // negative for one without an end
	Live bool
}

func newSpan(d time.Duration) span { return span{spanText(d), d.Milliseconds(), true} }

// spanText is what the script writes, too: 24s, 3m 10s, 2h 05m, 3d 4h.
func spanText(d time.Duration) string {
	s := int64(d / time.Second)
	switch {
	case s < 60:
		return fmt.Sprintf("%ds", s)
	case s < 60*60:
		return fmt.Sprintf("%dm %02ds", s/60, s%60)
	case s < 24*60*60:
		return fmt.Sprintf("%dh %02dm", s/3600, s/60%60)
	}
	return fmt.Sprintf("%dd %dh", s/86400, s/3600%24)
}

// leftSpan is the rest of a lease that was read at that moment.
func leftSpan(lease time.Duration, read time.Time) span {
	if lease < 0 {
		return span{Text: "no end", MS: 1 << 52}
	}
	return newSpan(max(0, lease-time.Since(read)))
}

// holderView is a holder or a waiter.
type holderView struct {
	ID, Name, Where string // Name is the ID's client if it has none
	Named           bool
	Count           int
	Write           bool
	Sign            string // of life
	Silent          bool
	For, Trace      string
	Waits           []keyLink
	Left            span // of the lease, or of the time in the queue
	Seen            span
	Client          linkTo // all that its client holds
}

func who(id, client string, who redisson.Identity) holderView {
	v := holderView{ID: printable(id), Name: shortID(id), Named: who.Name != ""}
	if client != "" {
		v.Client = link("./").with("q", client)
	}
	if v.Named {
		v.Name = printable(who.Name)
	}
	var where []string
	if who.Host != "" {
		where = append(where, "on "+printable(who.Host))
	}
	if who.PID != 0 {
		where = append(where, fmt.Sprintf("process %d", who.PID))
	}
	if who.Version != "" && who.Version != "(devel)" { // which no program that was built for a release has
		where = append(where, printable(who.Version))
	}
	v.Where = strings.Join(where, ", ")
	return v
}

// keyLink is a key with the link to its lock.
type keyLink struct {
	Key  keyView
	Link template.URL
}

func (h *handler) keyLinks(keys []string) (all []keyLink) {
	for _, key := range keys {
		all = append(all, keyLink{h.keyView(key), h.lockLink("lock", key).URL()})
	}
	return all
}

// shortID is the beginning and the number of "<uuid>:<number>".
func shortID(id string) string {
	const start = 8
	client, number, ok := strings.Cut(id, ":")
	if !ok || len(client) != 36 {
		return shorten(printable(id))
	}
	return printable(client[:start] + "…:" + number)
}

// kinds are how the list calls what it finds.
var kinds = [...]string{"plain", "fair", "fenced", "read", "write", "permit", "semaphore", "latch", "rate limiter"}

// KindOf returns the kind of an object in Redis, in the words that declare one: plain, fair, fenced, read, write and
// permit. Without such a word it is semaphore, latch or rate limiter. A fair lock for which nobody waits, and a spin
// lock, look as a plain one does. For other keys, it is the text of their type.
func KindOf(o redisson.Object) string { return kindOf(&o) }

// isFair reports whether the waiters stand in the queue of a fair lock, which gives each a time; other waiters are in
// the order in which they are woken.
func isFair(o *redisson.Object) bool { return len(o.Queue) > 0 && !o.Queue[0].Until.IsZero() }

func kindOf(o *redisson.Object) string {
	switch o.Type {
	case redisson.TypeLock:
		switch {
		case isFair(o):
			return "fair"
		case o.Token > 0:
			return "fenced"
		}
		return "plain"
	case redisson.TypeReadWrite:
		return cmp.Or(o.Mode, "read")
	case redisson.TypeExpirableSemaphore:
		return "permit"
	case redisson.TypeCountDownLatch:
		return "latch"
	case redisson.TypeRateLimiter:
		return "rate limiter"
	}
	return o.Type.String()
}

// rowView is a row of the list.
type rowView struct {
	ID          string // of the element, the same as long as the lock is there
	Link        template.URL
	Key         keyView
	Kind        string
	Holders     []holderView
	MoreHolders int64
	Free        int64 // permits, for those that have some
	HasFree     bool
	Seen, Left  span
	Waiting     int64
}

const shownHolders = 2

func (h *handler) rowView(r *row, now time.Time) rowView {
	v := rowView{
		ID: "r" + h.keys.id(r.Key), Link: h.lockLink("lock", r.Key).URL(), Key: h.keyView(r.Key), Kind: kindOf(&r.Object),
		Seen: newSpan(now.Sub(r.seen)), Left: leftSpan(r.TTL, r.read.Add(time.Since(now))), Waiting: r.waiting(),
		Free: r.Permits, HasFree: hasPermits(r.Type),
	}
	for _, one := range r.Holders[:min(len(r.Holders), shownHolders)] {
		v.Holders = append(v.Holders, who(one.ID, one.Client, one.Who))
		if last := &v.Holders[len(v.Holders)-1]; one.About != nil && one.About.Since.IsZero() { // who holds it by hand
			last.Named, last.Name = true, printable(one.About.For)
		}
	}
	v.MoreHolders = max(r.HolderCount, int64(len(r.Holders))) - int64(len(v.Holders))
	if len(r.Holders) == 0 {
		v.Seen = span{}
	}
	return v
}

func hasPermits(t redisson.ObjectType) bool {
	return t == redisson.TypeSemaphore || t == redisson.TypeExpirableSemaphore || t == redisson.TypeCountDownLatch
}

// statusView is the status of a page.
type statusView struct {
	Text      string // in words
	Bad       bool
	Searching bool // so that what is missing may yet be found
	Error     string
	Stale     string // "as of 12:03:07", where Redis does not answer: times stand still
}

// asOf says at what time the content of a page was true.
func asOf(at time.Time) string {
	if at.IsZero() {
		return "no answer yet"
	}
	return "as of " + at.Format(time.TimeOnly)
}

func listStatus(s *listState) statusView {
	switch {
	case s == nil:
		return statusView{Text: "Redis has not answered yet. This page tries again by itself.", Bad: true, Stale: asOf(time.Time{})}
	case s.failed != nil && s.total == 0:
		return statusView{Text: "Redis does not answer since " + s.since.Format(time.TimeOnly) + ".", Bad: true, Error: errorText(s.failed), Stale: asOf(s.whole)}
	case s.failed != nil && s.took > 0:
		text := "Not all of Redis answers, since " + s.since.Format(time.TimeOnly) + "."
		if !s.whole.IsZero() {
			text += " What was found last, at " + s.whole.Format(time.TimeOnly) + ", may be out of date."
		}
		return statusView{Text: text, Bad: true, Error: errorText(s.failed), Stale: asOf(s.whole)}
	case s.took == 0:
		text := fmt.Sprintf("Searching since %s", s.begun.Format(time.TimeOnly))
		if p := s.progress; p.Total > 0 {
			text += fmt.Sprintf(": %s of %s keys", thousands(p.Keys), thousands(p.Total))
		}
		return statusView{Text: text + " …", Searching: true}
	}
	text := "Read at " + s.whole.Format(time.TimeOnly)
	if s.took >= time.Second {
		text += fmt.Sprintf("; the last search for others, at %s, took %.1f s", s.searched.Format(time.TimeOnly), s.took.Seconds())
	}
	return statusView{Text: text + "."}
}

// errorText is an error in one line.
func errorText(err error) string { return shorten(printable(err.Error())) }
