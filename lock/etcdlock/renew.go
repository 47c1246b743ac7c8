package etcdlock

import (
	"context"
	"errors"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/leases"
)

// Extend implements leases.Store. A lease of etcd always begins again with the same length, so a longer one is another lease, to which
// the key moves. Its place in line stays: that is the create revision.
func (s *store) Extend(ctx context.Context, e *leases.Entry, d time.Duration) (time.Duration, error) {
	asked := time.Now()
	r := s.record(e)
	if r.created == 0 || len(r.leases) == 0 {
		return 0, lock.ErrNotHeld
	}
	l, seconds := r.lease(), secondsOf(d)
	var err error
	switch {
	case r.modified == 0: // nobody knows which lease the key has: none of them may be cut
		err = s.move(ctx, r, max(d, r.longest(asked)))
	case d <= l.rest(asked):
		err = s.check(ctx, r)
	case seconds <= l.seconds && l.seconds <= 2*seconds:
		err = s.prolong(ctx, r)
	default:
		err = s.move(ctx, r, d)
	}
	if err != nil {
		return 0, err
	}
	return r.lease().rest(asked), nil
}

// longest returns when the last of the leases of r ends that it may rely on, from now on.
func (r *record) longest(now time.Time) (rest time.Duration) {
	for _, l := range r.leases {
		rest = max(rest, l.rest(now))
	}
	return rest
}

// keep lets the key end by itself after d.
func (s *store) keep(ctx context.Context, r *record, d time.Duration) error {
	rest := r.lease().rest(time.Now())
	if r.modified != 0 && d <= rest && rest < d+time.Second {
		return s.check(ctx, r)
	}
	return s.move(ctx, r, d)
}

// prolong lets the lease begin again. Somebody may have removed the key and not the lease, so it looks for the key, too.
func (s *store) prolong(ctx context.Context, r *record) error {
	switch err := s.keepAlive(ctx, r.lease()); {
	case errors.Is(err, errNoLease):
		return lock.ErrNotHeld
	case err != nil:
		return err
	}
	return s.check(ctx, r)
}

// check looks for the key, and notes how it was modified.
func (s *store) check(ctx context.Context, r *record) error {
	var resp *clientv3.GetResponse
	_, err := s.ask(ctx, func(ctx context.Context) (err error) {
		resp, err = s.client.Get(ctx, r.key(), clientv3.WithKeysOnly())
		return err
	})
	switch {
	case err != nil:
		return err
	case len(resp.Kvs) == 0, resp.Kvs[0].CreateRevision != r.created:
		return lock.ErrNotHeld
	}
	r.modified = resp.Kvs[0].ModRevision
	return nil
}

// move gives the key a new lease of d.
func (s *store) move(ctx context.Context, r *record, d time.Duration) error {
	l, err := s.grant(ctx, d)
	if err != nil {
		if l != nil {
			s.drop(l.id)
		}
		return err
	}
	r.leases = append(r.leases, l)
	if err := s.rewrite(ctx, r, l); err != nil {
		return err
	}
	s.drop(r.ids(1)...)
	r.leases = r.leases[len(r.leases)-1:]
	return nil
}

// rewrite puts the key as r has it, with the lease l. The condition is the last modification, so a rewrite that comes late does
// nothing once another one was answered.
func (s *store) rewrite(ctx context.Context, r *record, l *lease) error {
	for {
		if r.modified == 0 {
			if err := s.check(ctx, r); err != nil {
				return err
			}
		}
		resp, err := s.txn(ctx, r, func(t clientv3.Txn) clientv3.Txn {
			return t.If(r.isMine(), clientv3.Compare(clientv3.ModRevision(r.key()), "=", r.modified)).Then(r.put(l))
		})
		switch {
		case errors.Is(err, errNoLease) && l == r.leases[0]: // the one that the key had
			return lock.ErrNotHeld
		case err != nil:
			r.modified = 0
			return err
		case resp.Succeeded:
			r.modified = resp.Header.Revision
			return nil
		}
		r.modified = 0 // by an attempt whose answer was lost, or by somebody else; or it is gone
	}
}

// Downgrade implements leases.Downgrader. Nobody who is ahead of a holder can be in the way, and those behind watch its key.
func (s *store) Downgrade(ctx context.Context, e *leases.Entry) error {
	r := s.record(e)
	if r.created == 0 || len(r.leases) == 0 {
		return lock.ErrNotHeld
	}
	r.value = valueOf(lock.Read, 0)
	if r.modified == 0 { // nobody knows which lease the key has
		return s.move(ctx, r, time.Duration(r.lease().seconds)*time.Second)
	}
	return s.rewrite(ctx, r, r.lease())
}
