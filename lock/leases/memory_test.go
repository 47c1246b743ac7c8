package leases_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/leases"
)

// memory is a service: a Store with all kinds, whose data outlives the Lockers that use it.
type memory struct {
	mu    sync.Mutex
	keys  map[string][]*record // those that hold and those that wait, in the order of arrival
	token int64
	moved chan struct{} // closed and replaced at each change
}

type record struct {
	id    string
	kind  lock.Kind
	limit int
	holds bool
	token int64
	until time.Time
}

func newMemory() *memory {
	return &memory{keys: make(map[string][]*record), moved: make(chan struct{})}
}

// sweep forgets what is over.
func (m *memory) sweep(key string) []*record {
	now := time.Now()
	m.keys[key] = slices.DeleteFunc(m.keys[key], func(r *record) bool { return !now.Before(r.until) })
	return m.keys[key]
}

func (m *memory) changed() {
	close(m.moved)
	m.moved = make(chan struct{})
}

// admits returns whether r may hold beside those ahead of it.
func admits(ahead []*record, r *record) error {
	permits := 0
	var busy error
	for _, o := range ahead {
		switch {
		case o.holds && o.kind.Family() != r.kind.Family():
			return &lock.KindError{Held: o.kind, Wanted: r.kind}
		case o.kind == lock.Read && r.kind == lock.Read:
		case o.kind == lock.Permit && r.kind == lock.Permit:
			if permits++; permits >= r.limit {
				busy = lock.ErrBusy
			}
		default:
			busy = &lock.BusyError{Remaining: time.Until(o.until)}
		}
	}
	return busy
}

func (m *memory) find(e *leases.Entry) *record {
	for _, r := range m.sweep(e.Key) {
		if r.id == e.ID {
			return r
		}
	}
	return nil
}

// ahead is all that r has to respect: who came before it, and who holds.
func (m *memory) ahead(key string, r *record) (others []*record) {
	before := true
	for _, o := range m.sweep(key) {
		before = before && o != r
		if o != r && (before || o.holds) {
			others = append(others, o)
		}
	}
	return others
}

func (m *memory) grant(r *record, d time.Duration) leases.Grant {
	if !r.holds {
		m.token++
		r.token, r.holds = m.token, true
	}
	r.extend(d)
	return leases.Grant{Token: r.token}
}

func (r *record) extend(d time.Duration) {
	if until := time.Now().Add(d); until.After(r.until) {
		r.until = until
	}
}

func (m *memory) Take(_ context.Context, e *leases.Entry, d time.Duration) (leases.Grant, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r := m.find(e); r != nil {
		return m.grant(r, d), nil
	}
	r := &record{id: e.ID, kind: e.Kind, limit: e.Limit}
	if err := admits(m.ahead(e.Key, r), r); err != nil {
		return leases.Grant{}, err
	}
	m.keys[e.Key] = append(m.keys[e.Key], r)
	return m.grant(r, d), nil
}

func (m *memory) Extend(_ context.Context, e *leases.Entry, d time.Duration) (time.Duration, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.find(e)
	if r == nil {
		return 0, lock.ErrNotHeld
	}
	r.extend(d)
	return 0, nil
}

func (m *memory) Free(_ context.Context, e *leases.Entry, keep time.Duration) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.find(e)
	if r == nil {
		return lock.ErrNotHeld
	}
	r.until = time.Now().Add(keep)
	m.sweep(e.Key)
	m.changed()
	return nil
}

func (m *memory) Downgrade(_ context.Context, e *leases.Entry) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r := m.find(e); r != nil {
		r.kind = lock.Read
		m.changed()
	}
	return nil
}

func (m *memory) Peek(_ context.Context, e *leases.Entry) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := &record{kind: e.Kind, limit: e.Limit}
	return admits(m.ahead(e.Key, r), r)
}

// left returns how many entries there are.
func (m *memory) left() (n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for key := range m.keys {
		n += len(m.sweep(key))
	}
	return n
}

// waiterTTL is how long a place in line lasts that nobody renews.
const waiterTTL = 5 * time.Second

var errForgotten = errors.New("the service has forgotten who was in line")

// fifo is a memory with a line.
type fifo struct{ *memory }

func (f fifo) Enter(ctx context.Context, e *leases.Entry, d time.Duration) (leases.Grant, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := &record{id: e.ID, kind: e.Kind, limit: e.Limit, until: time.Now().Add(waiterTTL)}
	f.keys[e.Key] = append(f.keys[e.Key], r)
	e.Answered()
	for {
		err := admits(f.ahead(e.Key, r), r)
		if err == nil {
			g := f.grant(r, d)
			g.Since = time.Now()
			f.changed()
			return g, nil
		}
		if !isBusy(err) {
			return leases.Grant{}, err
		}
		if f.find(e) == nil {
			return leases.Grant{}, errForgotten
		}
		r.until = time.Now().Add(waiterTTL)
		next := time.NewTimer(min(f.soonest(e.Key), waiterTTL/3))
		moved := f.moved
		f.mu.Unlock()
		select {
		case <-moved:
		case <-next.C:
		case <-ctx.Done():
		}
		next.Stop()
		f.mu.Lock()
		if ctx.Err() != nil {
			return leases.Grant{}, context.Cause(ctx)
		}
	}
}

// soonest is when the next entry ends by itself.
func (f fifo) soonest(key string) time.Duration {
	d := time.Hour
	for _, r := range f.sweep(key) {
		d = min(d, time.Until(r.until))
	}
	return d
}
