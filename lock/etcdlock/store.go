package etcdlock

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/leases"
)

// store is a leases.Store.
type store struct {
	client        *clientv3.Client
	leases        etcdserverpb.LeaseClient
	prefix        string
	timeout, poll time.Duration
	spares        spares
	stream        atomic.Int64 // the number of the stream on which watches begin
}

var _ interface {
	leases.Queue
	leases.Downgrader
	leases.Peeker
} = (*store)(nil)

// record is the store's state of the key of an entry. The methods of the store that have the entry own it.
type record struct {
	place
	name  string
	value string
	// The leases that the key may have. The last one is what it should have; there are others only after a question
	// without an answer.
	leases []*lease
	// created and modified are revisions. A record that was never seen in etcd has none; one that may have been modified since has no
	// modified.
	created, modified int64
	// doubt says that an attempt to write had no answer. It may be carried out at any time, as long as the lease lasts that it names.
	doubt bool
}

func (r *record) key() string { return r.dir + r.name }

func (r *record) lease() *lease { return r.leases[len(r.leases)-1] }

// ids returns those of all leases but the last n.
func (r *record) ids(n int) (ids []int64) {
	for _, l := range r.leases[:len(r.leases)-n] {
		ids = append(ids, l.id)
	}
	return ids
}

// isMine is true in a transaction while the key is what this stay has made of it.
func (r *record) isMine() clientv3.Cmp {
	return clientv3.Compare(clientv3.CreateRevision(r.key()), "=", r.created)
}

// put writes the key anew, which changes neither its name nor its place in line.
func (r *record) put(l *lease) clientv3.Op {
	return clientv3.OpPut(r.key(), r.value, clientv3.WithLease(clientv3.LeaseID(l.id)))
}

// grant returns the rest of the lease, counted from the question that has shown that r holds the lock.
func (r *record) grant(since time.Time) leases.Grant {
	return leases.Grant{Lease: r.lease().rest(since), Since: since, Token: r.created}
}

// record returns that of e, which keeps it.
func (s *store) record(e *leases.Entry) *record {
	r, ok := e.Data.(*record)
	if !ok {
		r = &record{place: s.place(e.Key), name: nameOf(e.Kind, e.ID), value: valueOf(e.Kind, e.Limit)}
		e.Data = r
	}
	return r
}

// longestKey leaves room for the other names in a transaction: the key is in it several times, and etcd bounds requests at 1.5 MiB.
const longestKey = 100 << 10

// fits returns why etcd would not take the key of e.
func (s *store) fits(e *leases.Entry) error {
	if n := len(s.prefix) + len(e.Key); n > longestKey {
		return fmt.Errorf("%w: a key of %d bytes, with its prefix, is too long for etcd: at most %d", lock.ErrRefused, n, longestKey)
	}
	return nil
}

// equip gives r a lease of d, unless it has one that lasts.
func (s *store) equip(ctx context.Context, r *record, d time.Duration) error {
	if len(r.leases) > 0 && r.lease().seconds == secondsOf(d) && r.lease().fresh(time.Now()) {
		return nil
	}
	l := s.spares.take(secondsOf(d))
	if l != nil {
		r.leases = append(r.leases, l)
		return nil
	}
	l, err := s.grant(ctx, d)
	if l != nil {
		r.leases = append(r.leases, l)
	}
	r.doubt = r.doubt || l != nil && err != nil
	return err
}

// txn commits the transaction that build makes. A failed attempt to write puts r in doubt.
func (s *store) txn(ctx context.Context, r *record, build func(clientv3.Txn) clientv3.Txn) (resp *clientv3.TxnResponse, err error) {
	failed, err := s.ask(ctx, func(ctx context.Context) (err error) {
		resp, err = build(s.client.Txn(ctx)).Commit()
		return err
	})
	r.doubt = r.doubt || failed > 0
	return resp, err
}

// Take implements leases.Store. It puts the key if the line would let it hold the lock at once, on the condition that
// nothing was put since it has read the line.
func (s *store) Take(ctx context.Context, e *leases.Entry, d time.Duration) (leases.Grant, error) {
	asked := time.Now()
	if err := s.fits(e); err != nil {
		return leases.Grant{}, err
	}
	r := s.record(e)
	if err := s.withLease(ctx, r, d, func() error { return s.tryPut(ctx, e, r) }); err != nil {
		return leases.Grant{}, s.giveUp(ctx, r, err)
	}
	return r.grant(asked), nil
}

// withLease does f with a lease of d for r. A spare may be gone without our knowledge; then another one is taken.
func (s *store) withLease(ctx context.Context, r *record, d time.Duration, f func() error) error {
	for {
		if err := s.equip(ctx, r, d); err != nil {
			return err
		}
		err := f()
		if !errors.Is(err, errNoLease) {
			return err
		}
		r.leases = r.leases[:len(r.leases)-1]
	}
}

// mostCollisions is how often others may come between the look and the put of a Take.
const mostCollisions = 4

func (s *store) tryPut(ctx context.Context, e *leases.Entry, r *record) error {
	page := firstPage
	seen := int64(0)
	for collisions := 0; collisions <= mostCollisions; {
		resp, err := s.txn(ctx, r, func(t clientv3.Txn) clientv3.Txn {
			return t.If(r.unchanged(e.Kind, seen), clientv3.Compare(clientv3.CreateRevision(r.key()), "=", 0)).
				Then(r.put(r.lease())).
				Else(r.reads(r.name, e.Kind, e.Limit, page)...)
		})
		if err != nil {
			return err
		}
		if resp.Succeeded {
			r.created, r.modified = resp.Header.Revision, resp.Header.Revision
			return nil
		}
		v, err := r.view(resp)
		if err != nil {
			return err
		}
		switch x := v.judge(e.Kind, e.Limit); {
		case x.unclear:
			page *= 8
		case x.mixed:
			return &lock.KindError{Held: x.refused, Wanted: e.Kind}
		case !x.held:
			return lock.ErrBusy
		case v.own != nil: // put by an attempt whose answer was lost
			r.created, r.modified = v.own.created, v.own.modified
			return nil
		default:
			seen = v.rev
			collisions++
		}
	}
	return s.tryJoin(ctx, e, r)
}

// tryJoin gets in line, which nobody can come between. If that is no place that holds the lock, giveUp takes the key back.
func (s *store) tryJoin(ctx context.Context, e *leases.Entry, r *record) error {
	_, x, err := s.join(ctx, e, r)
	switch {
	case err != nil:
		return err
	case x.mixed:
		return &lock.KindError{Held: x.refused, Wanted: e.Kind}
	case !x.held:
		return lock.ErrBusy
	}
	return nil
}

// unchanged is true in a transaction if nothing that is in the way of that kind was put after the revision.
func (p place) unchanged(kind lock.Kind, rev int64) clientv3.Cmp {
	end := p.end
	if kind == lock.Read {
		end = p.readers
	}
	return clientv3.Compare(clientv3.ModRevision(p.dir), "<", rev+1).WithRange(end)
}

// giveUp returns err, and removes the keys that r may have in etcd if err says that it holds nothing. After an outage,
// Free is called.
func (s *store) giveUp(ctx context.Context, r *record, err error) error {
	if !settled(err) && !errors.Is(err, lock.ErrBusy) && !errors.Is(err, lock.ErrUnsupported) {
		return err
	}
	if late := s.remove(ctx, r); late != nil && !errors.Is(late, lock.ErrNotHeld) && !errors.Is(late, lock.ErrRefused) {
		return late
	}
	return err
}

// discard keeps the lease of r for somebody else, or revokes it. Its key is not there.
func (s *store) discard(r *record) {
	if !s.spares.put(r.lease()) {
		s.drop(r.lease().id)
	}
	s.drop(r.ids(1)...)
	r.leases, r.created, r.modified = nil, 0, 0
}

// Free implements leases.Store.
func (s *store) Free(ctx context.Context, e *leases.Entry, keep time.Duration) error {
	r := s.record(e)
	if keep > 0 && r.created != 0 && len(r.leases) > 0 {
		return s.keep(ctx, r, keep)
	}
	return s.remove(ctx, r)
}

// remove takes away the key of r, and its leases.
func (s *store) remove(ctx context.Context, r *record) error {
	switch {
	case len(r.leases) == 0: // nothing of it was ever sent, or all of it is gone
		return nil
	case r.doubt:
		return s.freeInDoubt(ctx, r)
	case r.created == 0:
		s.discard(r)
		return nil
	}
	resp, err := s.txn(ctx, r, func(t clientv3.Txn) clientv3.Txn {
		return t.If(r.isMine()).Then(clientv3.OpDelete(r.key()))
	})
	switch {
	case err != nil:
		r.doubt = true
		return err
	case r.doubt: // one of the attempts did it, and others may be late
		return s.freeInDoubt(ctx, r)
	case !resp.Succeeded:
		s.drop(r.ids(0)...)
		r.leases = nil
		return lock.ErrNotHeld
	}
	s.discard(r)
	return nil
}

// freeInDoubt revokes the leases of r. So the key goes, and no late put can make it again.
func (s *store) freeInDoubt(ctx context.Context, r *record) error {
	found := false
	for _, id := range r.ids(0) {
		err := s.revoke(ctx, id)
		if err != nil && !errors.Is(err, errNoLease) {
			return err
		}
		found = found || err == nil
	}
	if !found {
		return lock.ErrNotHeld
	}
	r.leases = nil
	return nil
}

// Peek implements leases.Peeker.
func (s *store) Peek(ctx context.Context, e *leases.Entry) error {
	if err := s.fits(e); err != nil {
		return err
	}
	r := &record{place: s.place(e.Key), name: nameOf(e.Kind, e.ID)}
	_, x, err := s.look(ctx, r, e)
	switch {
	case err != nil:
		return err
	case x.mixed:
		return &lock.KindError{Held: x.refused, Wanted: e.Kind}
	case !x.held:
		return lock.ErrBusy
	}
	return nil
}

// look reads the line, as much of it as it takes to judge e.
func (s *store) look(ctx context.Context, r *record, e *leases.Entry) (*view, verdict, error) {
	for page := firstPage; ; page *= 8 {
		var resp *clientv3.TxnResponse
		_, err := s.ask(ctx, func(ctx context.Context) (err error) {
			resp, err = s.client.Txn(ctx).Then(r.reads(r.name, e.Kind, e.Limit, page)...).Commit()
			return err
		})
		if err != nil {
			return nil, verdict{}, err
		}
		v, err := r.view(resp)
		if err != nil {
			return nil, verdict{}, err
		}
		if x := v.judge(e.Kind, e.Limit); !x.unclear {
			return v, x, nil
		}
	}
}
