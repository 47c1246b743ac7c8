package etcdlock

import (
	"context"
	"errors"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/leases"
)

// errGone says that the entry of a waiter is not in the line anymore: it was paused for longer than its lease, or somebody removed it.
var errGone = errors.New("etcd does not have the place in line anymore")

// Enter implements leases.Queue. It puts the key at the end of the line, and then waits until nobody is in the way.
func (s *store) Enter(ctx context.Context, e *leases.Entry, d time.Duration) (leases.Grant, error) {
	if err := s.fits(e); err != nil {
		return leases.Grant{}, err
	}
	r := s.record(e)
	for {
		asked, err := s.waitInLine(ctx, e, r, d)
		switch {
		case err == nil:
			return r.grant(asked), nil
		case !errors.Is(err, errGone):
			return leases.Grant{}, err
		}
		s.drop(r.ids(0)...) // and begin again at the end
		r.leases, r.created, r.modified = nil, 0, 0
	}
}

// waitInLine returns when e holds the lock. asked is when the question was sent that has shown that.
func (s *store) waitInLine(ctx context.Context, e *leases.Entry, r *record, d time.Duration) (asked time.Time, err error) {
	var v *view
	var x verdict
	asked = time.Now()
	err = s.withLease(ctx, r, d, func() (err error) {
		v, x, err = s.join(ctx, e, r)
		return err
	})
	for err == nil {
		e.Answered()
		switch {
		case x.mixed:
			return asked, &lock.KindError{Held: x.refused, Wanted: e.Kind}
		case x.held:
			return asked, s.ready(ctx, r)
		}
		if err = s.pause(ctx, e, r, v, x); err == nil {
			asked = time.Now()
			v, x, err = s.lookAgain(ctx, e, r)
		}
	}
	return asked, err
}

// join puts the key, unless it is there, and reads the line.
func (s *store) join(ctx context.Context, e *leases.Entry, r *record) (*view, verdict, error) {
	reads := r.reads(r.name, e.Kind, e.Limit, firstPage)
	resp, err := s.txn(ctx, r, func(t clientv3.Txn) clientv3.Txn {
		return t.If(clientv3.Compare(clientv3.CreateRevision(r.key()), "=", 0)).
			Then(append([]clientv3.Op{r.put(r.lease())}, reads...)...).
			Else(reads...)
	})
	if err != nil {
		return nil, verdict{}, err
	}
	if resp.Succeeded {
		r.created, r.modified = resp.Header.Revision, resp.Header.Revision
	}
	v, err := r.view(resp)
	if err != nil {
		return nil, verdict{}, err
	}
	x := v.judge(e.Kind, e.Limit)
	r.created, r.modified = v.own.created, v.own.modified
	if x.unclear {
		return s.lookAgain(ctx, e, r)
	}
	return v, x, nil
}

// lookAgain reads the line. It returns errGone if the key is not in it.
func (s *store) lookAgain(ctx context.Context, e *leases.Entry, r *record) (*view, verdict, error) {
	v, x, err := s.look(ctx, r, e)
	if err == nil && (v.own == nil || v.own.created != r.created) {
		return nil, verdict{}, errGone
	}
	return v, x, err
}

// ready makes sure that a lease is left to begin with.
func (s *store) ready(ctx context.Context, r *record) error {
	if l := r.lease(); l.rest(time.Now()) > l.ttl/2 {
		return nil
	}
	return s.stayInLine(ctx, r)
}

// stayInLine renews the lease of a waiter.
func (s *store) stayInLine(ctx context.Context, r *record) error {
	err := s.keepAlive(ctx, r.lease())
	if errors.Is(err, errNoLease) {
		return errGone
	}
	return err
}

// pause returns when it is time to look again: something has changed, or nothing was heard for a while. It renews the lease.
func (s *store) pause(ctx context.Context, e *leases.Entry, r *record, v *view, x verdict) error {
	watching, stop := context.WithCancel(ctx)
	defer stop()
	w, err := s.watch(watching, r, v, x, e.Limit)
	if err != nil {
		return err
	}
	silent, poll := time.NewTimer(s.patience()), time.NewTimer(s.poll)
	defer silent.Stop()
	defer poll.Stop()
	renew := time.NewTimer(r.lease().untilRenewal())
	defer renew.Stop()
	for {
		select {
		case <-w.changed:
			return nil
		case <-poll.C:
			return nil
		case <-silent.C:
			select {
			case <-w.begun:
			default:
				s.replace(w)
				return nil
			}
		case <-renew.C:
			if err := s.stayInLine(ctx, r); err != nil {
				return err
			}
			renew.Reset(r.lease().untilRenewal())
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
