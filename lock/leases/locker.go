package leases

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/lock"
)

// Locker is a [lock.Locker] on a Store. Create one with New. It is safe for concurrent use and needs no closing: what it does in
// the background ends with the holds. Its holds have the methods Extend, Keep and Remaining that [lock.Hold] describes, and
// those of Fenced locks have Token.
type Locker struct {
	settings
	store  Store
	origin time.Time

	mu     sync.Mutex
	places map[string]*place // by key: where a stay is or somebody waits
}

var _ lock.Locker = (*Locker)(nil)

// New returns a Locker on s. Its errors are mistakes in the options.
func New(s Store, opts ...Option) (*Locker, error) {
	if s == nil {
		return nil, errors.New("leases: no store")
	}
	set, err := newSettings(opts)
	if err != nil {
		return nil, err
	}
	return &Locker{settings: set, store: s, origin: time.Now(), places: make(map[string]*place)}, nil
}

// Acquire takes the lock that r names, as [lock.Locker] says. With both Lease and MaxHold the lock ends with the shorter one.
//
// While the service has not answered, Acquire returns its last error within the Timeout. If r.Wait is positive, it does so half a
// second after Wait, if that is earlier.
func (l *Locker) Acquire(ctx context.Context, r lock.Request) (lock.Hold, error) {
	if err := l.valid(ctx, r); err != nil {
		return nil, err
	}
	h, err := l.reenter(ctx, r)
	if h == nil && err == nil {
		h, err = l.enter(ctx, r)
	}
	if err != nil {
		return nil, err
	}
	return h.public(), nil
}

// Peek returns the result that an Acquire of r without waiting would have now, and nil if it would get the lock, as
// [lock.Locker] says. It matches ErrUnsupported if the service has no such question.
func (l *Locker) Peek(ctx context.Context, r lock.Request) error {
	p, ok := l.store.(Peeker)
	if !ok {
		return fmt.Errorf("%w: this lock service has no Peek", lock.ErrUnsupported)
	}
	if err := l.valid(ctx, r); err != nil {
		return err
	}
	if joins, err := l.join(l.above(ctx, r.Key), r, func(*stay) {}); joins || err != nil {
		return err
	}
	e := l.entry(r)
	err := plain(ctx, e, l.timeout, func(ctx context.Context) error { return p.Peek(ctx, e) })
	return l.busy(ctx, r.Key, 0, err)
}

// valid returns why no Acquire of r with ctx can succeed, whoever holds the lock.
func (l *Locker) valid(ctx context.Context, r lock.Request) error {
	if err := r.Validate(); err != nil {
		return err
	}
	if err := l.Serves(r.Kind); err != nil {
		return err
	}
	if r.Bounded() {
		return fmt.Errorf("%w: this lock service has no levels and no rates", lock.ErrUnsupported)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// reenter returns a hold of the stay that an ancestor of ctx has, or neither a hold nor an error if there is none.
func (l *Locker) reenter(ctx context.Context, r lock.Request) (*hold, error) {
	above := l.above(ctx, r.Key)
	if len(above) == 0 {
		return nil, nil
	}
	h := l.newHold(ctx, r)
	joins, err := l.join(above, r, func(s *stay) { s.addLocked(h, time.Now()) })
	if !joins || err != nil {
		h.cancel(context.Canceled)
		return nil, err
	}
	return h, nil
}

// above returns the holds of key in the chain of ctx. It runs code of other Lockers, so the mutex must not be locked.
func (l *Locker) above(ctx context.Context, key string) (holds []*hold) {
	for a := range lock.Ancestors(ctx) {
		if o, ok := a.(interface{ own() *hold }); ok && o.own().l == l && o.own().r.Key == key {
			holds = append(holds, o.own())
		}
	}
	return holds
}

// join calls do, with the mutex locked, for the stay that a call under these holds re-enters with r, and reports whether there is one. It
// returns an error if the call must not have the lock.
func (l *Locker) join(above []*hold, r lock.Request, do func(*stay)) (bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	holds := slices.DeleteFunc(above, func(h *hold) bool { return !h.liveLocked(now) })
	if len(holds) == 0 {
		return false, nil
	}
	var kinds []lock.Kind
	for _, h := range holds {
		kinds = append(kinds, h.r.Kind)
	}
	s := holds[0].stay
	switch err := lock.Reenter(r.Kind, kinds...); {
	case err != nil:
		return true, err
	case r.Kind == lock.Fenced && s.token == 0: // begun as another kind, for which the service has no token
		return true, &lock.KindError{Held: holds[0].r.Kind, Wanted: lock.Fenced}
	}
	do(s)
	return true, nil
}

// entry returns a new Entry for r.
func (l *Locker) entry(r lock.Request) *Entry {
	return &Entry{Key: r.Key, Kind: r.Kind, Limit: r.Limit, ID: l.id + rand.Text(), turn: make(chan struct{}, 1)}
}

// leaseOf returns the lease that the Locker requests for r.
func (l *Locker) leaseOf(r lock.Request) time.Duration {
	d := cmp.Or(r.Lease, l.watchdog)
	if r.MaxHold > 0 {
		d = min(d, r.MaxHold)
	}
	return min(max(d, time.Millisecond), longest)
}

// busy completes err, if it is an ErrBusy, to a BusyError for the caller with ctx who has waited so long for key.
func (l *Locker) busy(ctx context.Context, key string, waited time.Duration, err error) error {
	if !errors.Is(err, lock.ErrBusy) {
		return err
	}
	var b lock.BusyError
	if e, ok := errors.AsType[*lock.BusyError](err); ok {
		b = *e
	}
	b.Remaining, b.Waited = max(b.Remaining, 0), waited
	for _, h := range l.holders(key) {
		b.HeldBy(ctx, h.ctx, h.r.Holder)
	}
	return &b
}

// holders returns the live holds that this process has of key.
func (l *Locker) holders(key string) (holds []*hold) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p, now := l.places[key], time.Now()
	if p == nil {
		return nil
	}
	for _, s := range p.stays {
		for _, h := range s.holds {
			if h.liveLocked(now) {
				holds = append(holds, h)
			}
		}
	}
	return holds
}

// EntryOf returns the Entry of h in the service, and nil if h is no hold of a Locker of this package. With
// [lock.Ancestors], the code of a Store finds its own entries above a context.
func EntryOf(h lock.Hold) *Entry {
	if o, ok := h.(interface{ own() *hold }); ok {
		return o.own().stay.entry
	}
	return nil
}
