package redisson

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"sync/atomic"
	"time"

	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson/internal/pubsub"
)

// permit serves lock.Permit on the data of Redisson's RPermitExpirableSemaphore, so that its holders are freed by their
// lease after a crash. The holder's id is the permit's, 16 bytes, in the semaphore of each level. The first Acquire makes a semaphore that is not
// there, and marks it as its own. Each Acquire of such a one goes by the Limit of its own request, and it is gone when nobody
// holds a permit, so that keys made from requests leave nothing. One that was made with TrySetPermits, here or in Java, stays
// and keeps its own number.
//
// A rate is a permit of Redisson's RRateLimiter of the name of the key with the suffix "rate". A rate that was set here
// follows each Acquire's request, and is gone when its interval has passed without one. Another one keeps its own rate.
type permit struct {
	levels []level // beside that of the holder's name
	rate   lock.Rate
}

// level is a semaphore, by its name as mapped.
type level struct {
	name  string
	limit int32
}

// onlyPermit has one level, and no rate.
var onlyPermit = &permit{}

func permitKeys(name string) []string { return []string{name, permitsKey(name), permitsMark(name)} }

// levelsOf are all levels of a holder. There is none where it asks for a permit of a rate alone.
func (p *permit) levelsOf(ho *holder) []level {
	if ho.limit == 0 {
		return nil
	}
	return append([]level{{ho.name(), ho.limit}}, p.levels...)
}

// call is that of a script of permits, with three arguments of its own.
func (p *permit) call(s *script, ho *holder, own ...any) call {
	levels := p.levelsOf(ho)
	cl := call{Script: s, Args: append([]any{ho.id, len(levels)}, own...)}
	for _, l := range levels {
		cl.Keys = append(cl.Keys, permitKeys(l.name)...)
		cl.Args = append(cl.Args, semaphoreChannel(l.name), l.limit)
	}
	return cl
}

func (p *permit) enter(ho *holder, lease time.Duration) call {
	cl := p.call(permitAcquire, ho, millis(lease), p.rate.Permits, millis(p.rate.Interval))
	if p.rate.Permits > 0 {
		cl.Keys = append(cl.Keys, rateKeys(rateName(ho.name()), idFrom([]byte(ho.id[:permitSize/2])))...)
	}
	return cl
}

func (p *permit) update(ho *holder, _ counts, lease time.Duration, _ change) call {
	return p.call(permitUpdate, ho, millis(lease), 0, 0)
}

func (p *permit) exit(ho *holder, successor string, kept time.Duration) call {
	cl := p.call(permitRelease, ho, millis(kept), successor, 0)
	for _, l := range p.levelsOf(ho) {
		cl.Keys = append(cl.Keys, wakeName(l.name))
		cl.Spare++
	}
	return cl
}

// maxLevels is how many levels a request can have.
const maxLevels = 3

// queueOf returns the queue for a level of ho, by its number; the number behind the levels is the rate's.
func (ho *holder) queueOf(at int) queueID {
	p, ok := ho.family.(*permit)
	if !ok {
		return ho.queueID()
	}
	if levels := p.levelsOf(ho); at < len(levels) {
		return queueID{name: levels[at].name, kind: lock.Permit, permits: int64(levels[at].limit)}
	}
	return queueID{name: rateName(ho.name()), kind: limiterQueue, permits: int64(p.rate.Permits)}
}

// has reports whether ho has the lock of that name, as one of its levels, too.
func (ho *holder) holdsName(name string) bool {
	p, ok := ho.family.(*permit)
	return ho.name() == name || ok && slices.ContainsFunc(p.levels, func(l level) bool { return l.name == name })
}

// bounded is the family of a request with levels or a rate.
func (c *Client) bounded(r lock.Request) *permit {
	p := &permit{rate: r.Rate}
	for _, l := range r.Levels {
		p.levels = append(p.levels, level{c.mapName(l.Key), int32(min(l.Limit, 1<<30))})
	}
	return p
}

// beneath is Acquire for levels that ancestors of the call hold in part. It re-enters their holder, and takes the other
// levels under that. It takes nothing of the rate if they have the key of r. Without such an ancestor it returns
// nothing.
func (c *Client) beneath(ctx context.Context, r lock.Request, began time.Time) (lock.Hold, error) {
	for _, l := range levelsOf(r) {
		outer, err := c.ancestor(ctx, lockID{c.mapName(l.Key), lock.Permit}, lock.Permit)
		if outer == nil || err != nil {
			continue
		}
		rest := c.without(r, outer.holder)
		h, err := c.reenter(ctx, outer, r, began)
		switch {
		case h == nil && err == nil: // the holder of outer is about to be lost
			continue
		case err != nil || rest.Key == "":
			return h, err
		}
		inner, err := c.acquire(h.Context(), rest, true, began)
		if err != nil {
			go withdraw(ctx, []lock.Hold{h}) // the time of the call is over by now
			if busy, ok := errors.AsType[*lock.BusyError](err); ok && !busy.Rate {
				busy.Level = cmp.Or(busy.Level, rest.Key)
			}
			return nil, err
		}
		h.(*hold).around, inner.(*hold).around = inner.(*hold).around, h.(*hold)
		return inner, nil
	}
	return nil, nil
}

// without is r without the levels that ho has.
func (c *Client) without(r lock.Request, ho *holder) lock.Request {
	rest := slices.DeleteFunc(levelsOf(r), func(l lock.Level) bool { return ho.holdsName(c.mapName(l.Key)) })
	if len(rest) == 0 {
		return lock.Request{}
	}
	if rest[0].Key != r.Key {
		r.Rate = lock.Rate{}
	}
	r.Key, r.Limit, r.Levels = rest[0].Key, rest[0].Limit, rest[1:]
	return r
}

// full notes in busy which of the levels of r has no permit, counted from 1, or that it is the rate.
func full(busy *lock.BusyError, r lock.Request, level int) {
	if levels := levelsOf(r); level > len(levels) || r.Limit == 0 {
		busy.Rate = true
	} else {
		busy.Level = levels[max(level, 1)-1].Key
	}
}

// levelsOf are all levels of a request.
func levelsOf(r lock.Request) []lock.Level {
	return append([]lock.Level{{Key: r.Key, Limit: r.Limit}}, r.Levels...)
}

// checkLevels refuses levels that can't be taken by one script.
func (c *Client) checkLevels(name string, r lock.Request) error {
	for _, l := range r.Levels {
		if c.topology.Mapped() && pubsub.Slot(c.mapName(l.Key)) != pubsub.Slot(name) {
			return fmt.Errorf("redisson: %w: the levels %q and %q are in several slots of the cluster: give their keys one hash tag, as in {x}", lock.ErrUnsupported, r.Key, l.Key)
		}
	}
	return nil
}

// ServesLevels returns nil, as requests with Levels and with a Rate are served, unless the keys show that they have no hash tag in common in a Redis
// Cluster; see [lock.Locker]. The keys may be templates of package keyexpr.
func (c *Client) ServesLevels(keys ...string) error {
	if len(keys) < 2 || !c.topology.Mapped() {
		return nil
	}
	first := hashTag.FindStringSubmatch(c.mapName(keys[0]))
	for _, key := range keys[1:] {
		if tag := hashTag.FindStringSubmatch(c.mapName(key)); first == nil || tag == nil || tag[1] != first[1] {
			return fmt.Errorf("redisson: %w: levels need one hash tag in a cluster, as in {x}, and %q and %q have none in common", lock.ErrUnsupported, keys[0], key)
		}
	}
	return nil
}

// hashTag finds the text in the first braces of a key, or of a template. Those of a hole, #{…}, are none, and may be in it.
var hashTag = regexp.MustCompile(`(?:^|[^#])\{((?:#\{[^{}]*\}|[^{}])+)\}`)

// errElsewhere is why a waiter leaves a queue: it is another level that has no permit.
var errElsewhere = errors.New("redisson: another level is full")

// refused notes which level has no permit. It reports whether w stands in the queue of another one, and has to change.
func (w *waiter) refused(a answer) (elsewhere bool) {
	if w.own.kind != lock.Permit {
		return false
	}
	was := w.at
	w.at, w.ttl = int(min(max(a.Values[len(a.Values)-1], 1), maxLevels+1))-1, duration(a.Values[1])
	return w.at != was && w.place.queue != nil
}

// begun is a hold of nothing: a permit of a rate, which nobody gives back.
type begun struct {
	ctx  context.Context
	end  context.CancelCauseFunc
	lost *lock.LostError // by MaxHold, if there is one
	over atomic.Bool
}

// newBegun returns a hold for which a permit of a rate was taken.
func newBegun(ctx context.Context, r lock.Request) *begun {
	b := &begun{lost: &lock.LostError{Held: r.MaxHold, Reason: lock.ErrMaxHold}}
	ctx, b.end = context.WithCancelCause(ctx)
	b.ctx = lock.WithHold(ctx, b, func() bool { return ctx.Err() == nil })
	if r.MaxHold > 0 {
		stop := time.AfterFunc(r.MaxHold, func() { b.end(b.lost) })
		context.AfterFunc(ctx, func() { stop.Stop() })
	}
	return b
}

// Context implements [lock.Hold].
func (b *begun) Context() context.Context { return b.ctx }

// Release implements [lock.Hold].
func (b *begun) Release(context.Context) error {
	if b.over.Swap(true) {
		return lock.ErrNotHeld
	}
	if b.end(context.Canceled); context.Cause(b.ctx) == b.lost { //nolint:errorlint // that very one
		return b.lost
	}
	return nil
}
