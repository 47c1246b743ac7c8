package setnxlock

import (
	"fmt"

	"github.com/latchkey-go/latchkey/internal/reply"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/leases"
	"github.com/redis/go-redis/v9"
)

// Locker takes string locks in Redis. It is a lock.Locker, safe for concurrent use and meant to be made once for a process: its
// goroutines line up inside of it, and the first of them asks Redis. It needs no closing.
type Locker struct{ *leases.Locker }

var _ lock.Locker = (*Locker)(nil)

// New returns a Locker on rdb: a *redis.Client, for a single server or Sentinel, or a *redis.ClusterClient. The client stays the
// caller's, who closes it when no lock is held anymore. New does not talk to Redis, so that a program can start without it.
//
// Set ContextTimeoutEnabled in the options of rdb: then a connection to a silent server is given up as soon as the [Timeout] is over.
func New(rdb redis.UniversalClient, opts ...Option) (*Locker, error) {
	set, err := newSettings(rdb, opts)
	if err != nil {
		return nil, err
	}
	kinds := leases.Kinds("a string with an owner and a lease is one exclusive lock: it has no queue, readers, counter or permits; package redisson has",
		lock.Exclusive, lock.Spin)
	l, err := leases.New(newStore(rdb, set.texts), append(set.leases, kinds)...)
	if err != nil {
		return nil, fmt.Errorf("setnxlock: %w", err)
	}
	return &Locker{l}, nil
}

func newStore(rdb redis.UniversalClient, t texts) leases.Store {
	s := &store{rdb, reply.NewFresh(rdb), t}
	if t.channel == nil {
		return s
	}
	return &watchingStore{s, newListener(rdb)}
}
