package etcdlock

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"slices"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"

	"github.com/latchkey-go/latchkey/lock"
)

// lease is one of etcd's. A stay has its own.
//
// We choose the ID, so that a lease whose grant had no answer is ours, too, and can be revoked. It comes from the operating system: two
// processes that go on from one memory image would draw the same.
type lease struct {
	id      int64
	seconds int64         // asked for
	ttl     time.Duration // granted: longer, if etcd's minimum is longer
	since   time.Time     // before the question was sent whose answer was the ttl
}

func (l *lease) rest(now time.Time) time.Duration { return l.since.Add(l.ttl).Sub(now) }

// untilRenewal returns when a waiter renews l.
func (l *lease) untilRenewal() time.Duration { return time.Until(l.since.Add(l.ttl / 3)) }

// secondsOf returns the shortest lease of etcd that is not shorter than d.
func secondsOf(d time.Duration) int64 { return max(1, int64((d+time.Second-1)/time.Second)) }

// grant asks for a lease of d. After an outage it may be there nevertheless, so grant returns it along with the error.
func (s *store) grant(ctx context.Context, d time.Duration) (*lease, error) {
	var id [8]byte
	rand.Read(id[:]) // never fails
	l := &lease{id: max(1, int64(binary.LittleEndian.Uint64(id[:])>>1)), seconds: secondsOf(d), since: time.Now()}
	l.ttl = time.Duration(l.seconds) * time.Second
	failed, err := s.ask(ctx, func(ctx context.Context) error {
		asked := time.Now()
		r, err := s.leases.LeaseGrant(ctx, &etcdserverpb.LeaseGrantRequest{ID: l.id, TTL: l.seconds}, grpc.WaitForReady(true))
		if err != nil {
			return err
		}
		l.since, l.ttl = asked, time.Duration(r.TTL)*time.Second
		return nil
	})
	switch {
	case err == nil, errors.Is(err, errExists): // or by an attempt whose answer was lost
		return l, nil
	case !settled(err):
		return l, err
	case failed > 0:
		s.drop(l.id)
	}
	return nil, err
}

// keepAlive makes l begin again. It returns errNoLease if it is over.
func (s *store) keepAlive(ctx context.Context, l *lease) error {
	_, err := s.ask(ctx, func(ctx context.Context) error {
		ctx, cancel := context.WithCancel(ctx) // ends the stream
		defer cancel()
		asked := time.Now()
		stream, err := s.leases.LeaseKeepAlive(ctx, grpc.WaitForReady(true))
		if err != nil {
			return err
		}
		if err := stream.Send(&etcdserverpb.LeaseKeepAliveRequest{ID: l.id}); err != nil {
			return err
		}
		r, err := stream.Recv()
		switch {
		case err != nil:
			return err
		case r.TTL <= 0:
			return errNoLease
		}
		l.since, l.ttl = asked, time.Duration(r.TTL)*time.Second
		return nil
	})
	return err
}

// revoke ends the lease and removes the key that it has. It returns errNoLease if etcd does not have it.
func (s *store) revoke(ctx context.Context, id int64) error {
	failed, err := s.ask(ctx, func(ctx context.Context) error {
		_, err := s.leases.LeaseRevoke(ctx, &etcdserverpb.LeaseRevokeRequest{ID: id}, grpc.WaitForReady(true))
		return err
	})
	if failed > 0 && errors.Is(err, errNoLease) { // an earlier attempt did it
		return nil
	}
	return err
}

// drop revokes leases that no key needs, in the background. A lease that it can't revoke ends by itself.
func (s *store) drop(leases ...int64) {
	if len(leases) == 0 {
		return
	}
	go func() {
		for _, id := range leases {
			if err := s.revoke(context.Background(), id); err != nil && !errors.Is(err, errNoLease) && !errors.Is(err, lock.ErrRefused) {
				return
			}
		}
	}()
}

// spares are leases whose key was removed. Another stay that comes soon has no need to ask for a lease then.
//
// Only a lease whose questions were all answered becomes a spare. Otherwise some transaction that puts a key may still be on its way,
// and the key would last as long as the next stay.
type spares struct {
	mu     sync.Mutex
	leases []*lease // oldest first
}

const (
	mostSpares   = 64
	longestSpare = DefaultWatchdog // of a lease, as nobody revokes spares
)

// fresh reports whether l is good for another stay: a holder would not yet renew it.
func (l *lease) fresh(now time.Time) bool { return now.Sub(l.since) < l.ttl/3 }

// put keeps l and reports whether it did.
func (s *spares) put(l *lease) bool {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leases = slices.DeleteFunc(s.leases, func(l *lease) bool { return !l.fresh(now) })
	if !l.fresh(now) || l.ttl > longestSpare || len(s.leases) >= mostSpares {
		return false
	}
	s.leases = append(s.leases, l)
	return true
}

// take returns a lease that was requested with so many seconds, or nil.
func (s *spares) take(seconds int64) *lease {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, l := range slices.Backward(s.leases) {
		if l.seconds == seconds && l.fresh(now) {
			s.leases = slices.Delete(s.leases, i, i+1)
			return l
		}
	}
	return nil
}
