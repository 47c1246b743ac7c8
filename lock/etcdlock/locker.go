package etcdlock

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/leases"
)

// Locker takes locks in etcd. Create one with New. It is safe for concurrent use and needs no closing.
type Locker struct {
	*leases.Locker
	store *store
}

var _ lock.Locker = (*Locker)(nil)

const noSpin = "a waiter for any lock in etcd stands in line and is told when it is its turn, so polling would only cost the cluster; " +
	"use Exclusive"

// New returns a Locker on client, which the caller closes after the last lock was released. New does not ask etcd; see
// [Locker.Check]. Its errors are mistakes in the options.
func New(client *clientv3.Client, opts ...Option) (*Locker, error) {
	if client == nil {
		return nil, errors.New("etcdlock: no client given: make one with clientv3.New")
	}
	set, err := newSettings(opts)
	if err != nil {
		return nil, err
	}
	s := &store{client: client, leases: clientv3.RetryLeaseClient(client), prefix: set.prefix, timeout: set.timeout, poll: set.poll}
	l, err := leases.New(s, leases.Watchdog(set.watchdog), leases.Timeout(set.timeout), leases.ID(set.id), leases.Kinds(noSpin,
		lock.Exclusive, lock.Fair, lock.Read, lock.Write, lock.Fenced, lock.Permit))
	if err != nil {
		return nil, fmt.Errorf("etcdlock: %w", err)
	}
	return &Locker{Locker: l, store: s}, nil
}

// oldest is the version of etcd from which on everything is there that is used here.
var oldest = [2]int{3, 4}

// Check asks whether etcd can serve the locks: whether a majority of its members answers, whether the client may read under the
// Prefix, and whether no member that answers is older than version 3.4. It is meant for the start of a program. It matches
// lock.ErrRefused if waiting can't help.
func (l *Locker) Check(ctx context.Context) error {
	s := l.store
	if _, err := s.ask(ctx, func(ctx context.Context) error {
		_, err := s.client.Get(ctx, s.place("latchkey").dir, clientv3.WithCountOnly())
		return err
	}); err != nil {
		return fmt.Errorf("etcdlock: %w", err)
	}
	for _, endpoint := range s.client.Endpoints() {
		status, err := s.status(ctx, endpoint)
		if err != nil { // a majority has answered
			continue
		}
		if tooOld(status.Version) {
			return fmt.Errorf("etcdlock: %w: the member at %s has version %s, and %d.%d is the oldest that works", lock.ErrRefused,
				endpoint, status.Version, oldest[0], oldest[1])
		}
	}
	return nil
}

func (s *store) status(ctx context.Context, endpoint string) (*clientv3.StatusResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, s.patience())
	defer cancel()
	return s.client.Status(ctx, endpoint)
}

// tooOld reports whether a version, such as 3.4.12, is one that can't be used, or none at all.
func tooOld(version string) bool {
	for i, text := range strings.SplitN(version, ".", 3)[:min(2, strings.Count(version, ".")+1)] {
		n, err := strconv.Atoi(text)
		if err != nil || n != oldest[i] {
			return err != nil || n < oldest[i]
		}
	}
	return !strings.Contains(version, ".")
}
