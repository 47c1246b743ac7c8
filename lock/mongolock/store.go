package mongolock

import (
	"context"
	"errors"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/leases"
)

// store implements [leases.Store].
type store struct {
	settings
	coll  *mongo.Collection
	clock clock
	words words
}

func newStore(coll *mongo.Collection, set settings) *store {
	s := &store{settings: set, coll: concerned(coll), words: pipeline{}}
	s.clock.admin = coll.Database().Client().Database("admin")
	if set.hello {
		s.words = literal{}
	}
	return s
}

var _ interface {
	leases.Store
	leases.Peeker
} = (*store)(nil)

// question has the values for the commands about one entry.
type question struct {
	id      string // of the document
	holder  string
	ms      int64
	counted bool      // whether the document gets a token
	now     time.Time // of the server, for a literal
}

// ask prepares a question, and asks for the server's time where that must be known before.
func (s *store) ask(ctx context.Context, e *leases.Entry, d time.Duration) (question, error) {
	q := question{id: idOf(e.Key), holder: e.ID, ms: millis(d + s.slack), counted: s.tokens}
	var err error
	if s.hello {
		q.now, err = s.clock.read(ctx)
	}
	return q, err
}

// Take implements [leases.Store].
func (s *store) Take(ctx context.Context, e *leases.Entry, d time.Duration) (leases.Grant, error) {
	ctx = plainContext(ctx)
	q, err := s.ask(ctx, e, d)
	if err != nil {
		return leases.Grant{}, explain("take", err)
	}
	asked := time.Now()
	doc, err := s.take(ctx, q)
	switch {
	case duplicate(err):
		return leases.Grant{}, s.look(ctx, q)
	case err != nil:
		return leases.Grant{}, explain("take", err)
	}
	if err := doc.fault(q); err != nil {
		return leases.Grant{}, err
	}
	if doc.holder() != q.holder {
		return leases.Grant{}, s.busy(ctx, doc.until())
	}
	if !s.hello {
		s.clock.set(doc.until().Add(-time.Duration(q.ms)*time.Millisecond), asked)
	}
	return leases.Grant{Token: doc.token()}, nil
}

func (s *store) take(ctx context.Context, q question) (document, error) {
	opts := options.FindOneAndUpdate().SetUpsert(true).SetReturnDocument(options.After).SetProjection(fields)
	var doc document
	err := s.coll.FindOneAndUpdate(ctx, s.words.free(q), s.words.take(q), opts).Decode(&doc)
	if !errors.Is(err, mongo.ErrNoDocuments) {
		return doc, err
	}
	// MongoDB always has a document to return. SecantusDB has none if two upserts met, and may have made ours.
	found, err := s.find(ctx, bson.D{{Key: "_id", Value: q.id}})
	if err == nil && found == nil {
		err = &lock.BusyError{} // held by the other one, who has gone
	}
	if err != nil {
		return doc, err
	}
	return *found, nil
}

// look finds out why an upsert had to insert a document that is there already: it is held, or it is not ours.
func (s *store) look(ctx context.Context, q question) error {
	doc, err := s.find(ctx, bson.D{{Key: "_id", Value: q.id}})
	switch {
	case err != nil || doc == nil: // it was in the way a moment ago
		return &lock.BusyError{}
	case doc.fault(q) != nil:
		return doc.fault(q)
	}
	return s.busy(ctx, doc.until())
}

// busy is the answer to those who find a lock that lasts until the time of the server's clock.
func (s *store) busy(ctx context.Context, until time.Time) error {
	if !s.clock.fresh() {
		_, _ = s.clock.read(ctx) // without it the rest is not known
	}
	return &lock.BusyError{Remaining: s.clock.rest(until)}
}

// Extend implements [leases.Store]. It never revives a document that has expired: somebody may know the lock to be
// free.
func (s *store) Extend(ctx context.Context, e *leases.Entry, d time.Duration) (time.Duration, error) {
	ctx = plainContext(ctx)
	q, err := s.ask(ctx, e, d)
	if err != nil {
		return 0, explain("extend", err)
	}
	return 0, found("extend")(s.update(ctx, s.words.held(q), s.words.extend(q)))
}

// Free implements [leases.Store]. A document without a token goes; one with it stays, and its lease ends now.
func (s *store) Free(ctx context.Context, e *leases.Entry, keep time.Duration) error {
	ctx = plainContext(ctx)
	q, err := s.ask(ctx, e, 0)
	if err != nil {
		return explain("free", err)
	}
	if q.ms = 0; keep > 0 {
		q.ms = millis(keep + s.slack)
		return found("free")(s.update(ctx, s.words.held(q), s.words.end(q)))
	}
	if !q.counted {
		if n, err := s.remove(ctx, append(s.words.held(q), tokenless)); n > 0 || err != nil {
			return found("free")(n, err)
		}
	}
	if n, err := s.update(ctx, s.words.held(q), s.words.end(q)); n > 0 || err != nil {
		return found("free")(n, err)
	}
	return s.sweep(ctx, q)
}

// sweep removes the expired document of a lock that is not held anymore.
func (s *store) sweep(ctx context.Context, q question) error {
	if _, err := s.remove(ctx, bson.D{{Key: "_id", Value: q.id}, {Key: fieldBy, Value: q.holder}, tokenless}); err != nil {
		return explain("free", err)
	}
	return lock.ErrNotHeld
}

// Peek implements [leases.Peeker].
func (s *store) Peek(ctx context.Context, e *leases.Entry) error {
	ctx = plainContext(ctx)
	q, err := s.ask(ctx, e, 0)
	if err != nil {
		return explain("peek", err)
	}
	doc, err := s.find(ctx, s.words.occupied(q))
	switch {
	case err != nil:
		return explain("peek", err)
	case doc == nil:
		return nil
	}
	if err := doc.fault(q); err != nil {
		return err
	}
	return s.busy(ctx, doc.until())
}

// find returns nil if there is no document.
func (s *store) find(ctx context.Context, filter bson.D) (*document, error) {
	var doc document
	err := s.coll.FindOne(ctx, filter, options.FindOne().SetProjection(fields)).Decode(&doc)
	switch {
	case errors.Is(err, mongo.ErrNoDocuments):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return &doc, nil
}

func (s *store) update(ctx context.Context, filter bson.D, update any) (int64, error) {
	r, err := s.coll.UpdateOne(ctx, filter, update)
	if err != nil {
		return 0, err
	}
	return r.MatchedCount, nil
}

func (s *store) remove(ctx context.Context, filter bson.D) (int64, error) {
	r, err := s.coll.DeleteOne(ctx, filter)
	if err != nil {
		return 0, err
	}
	return r.DeletedCount, nil
}

// found makes the error of a step out of how many documents it has found.
func found(step string) func(n int64, err error) error {
	return func(n int64, err error) error {
		switch {
		case err != nil:
			return explain(step, err)
		case n == 0:
			return lock.ErrNotHeld
		}
		return nil
	}
}
