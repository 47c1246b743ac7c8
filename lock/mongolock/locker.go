package mongolock

import (
	"context"
	"errors"
	"os"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"

	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/leases"
)

// Collection is the name that ShedLock gives to its collection by default.
const Collection = "shedLock"

// Locker is a [lock.Locker] on a collection. Create one with [New]. It is safe for concurrent use and needs no closing; the client
// of the collection is the caller's, and must stay connected until all holds are gone.
type Locker struct {
	*leases.Locker

	store *store
}

var _ lock.Locker = (*Locker)(nil)

// New returns a Locker on the documents of coll, which need not exist yet. It asks the server nothing: its errors are
// mistakes in the options. The first Acquire reports a collection or a server that won't do, with lock.ErrRefused;
// [Locker.Check] reports it before.
func New(coll *mongo.Collection, opts ...Option) (*Locker, error) {
	if coll == nil {
		return nil, errors.New("mongolock: no collection")
	}
	set, err := newSettings(opts)
	if err != nil {
		return nil, err
	}
	s := newStore(coll, set)
	reason := "a document has one holder, and no line of waiters"
	kinds := []lock.Kind{lock.Exclusive, lock.Spin}
	if set.tokens {
		kinds = append(kinds, lock.Fenced)
	} else {
		reason += "; mongolock.Tokens serves fenced locks"
	}
	core, err := leases.New(s, append([]leases.Option{leases.ID(host() + "/"), leases.Kinds(reason, kinds...)}, set.core...)...)
	if err != nil {
		return nil, err
	}
	return &Locker{core, s}, nil
}

// Check returns why the server or the collection won't do, as a program may want to know when it starts. It takes and frees a lock with
// a key of its own, and needs the privileges to list collections and indexes, which the locks themselves don't.
func (l *Locker) Check(ctx context.Context) error { return l.store.check(plainContext(ctx)) }

// host is the beginning of lockedBy, for people who look at the documents.
func host() string {
	name, err := os.Hostname()
	if err != nil || name == "" {
		return "unknown"
	}
	return name
}

// concerned returns coll with the concerns that locks need, whatever it had.
func concerned(coll *mongo.Collection) *mongo.Collection {
	journal := true
	return coll.Clone(options.Collection().
		SetWriteConcern(&writeconcern.WriteConcern{W: writeconcern.WCMajority, Journal: &journal}).
		SetReadConcern(readconcern.Linearizable()).
		SetReadPreference(readpref.Primary()))
}

// plainContext is ctx without the session of a caller in a transaction: a lock that others can't see before the commit
// is none.
func plainContext(ctx context.Context) context.Context {
	if mongo.SessionFromContext(ctx) == nil {
		return ctx
	}
	return mongo.NewSessionContext(ctx, nil)
}

// millis is d in whole milliseconds, as many as a Date has, and never less than d: one more, because the server's now has lost its
// microseconds.
func millis(d time.Duration) int64 { return (d + time.Millisecond - 1).Milliseconds() + 1 }
