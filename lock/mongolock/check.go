package mongolock

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/leases"
)

// check returns the mistakes in the collection, the indexes or the server.
func (s *store) check(ctx context.Context) error {
	for _, step := range []func(context.Context) error{s.checkCollection, s.checkIndexes, s.checkLock} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// checkLock takes and frees a lock that nobody else wants.
func (s *store) checkLock(ctx context.Context) error {
	e := &leases.Entry{Key: "latchkey:check:" + rand.Text(), ID: rand.Text()}
	if _, err := s.Take(ctx, e, time.Minute); err != nil {
		return err
	}
	if err := s.Free(ctx, e, 0); err != nil {
		return err
	}
	_, err := s.remove(ctx, doc("_id", idOf(e.Key))) // what a token has kept
	return explain("check", err)
}

func (s *store) checkCollection(ctx context.Context) error {
	found, err := s.coll.Database().ListCollectionSpecifications(ctx, doc("name", s.coll.Name()))
	if err != nil {
		return explain("check", err)
	}
	for _, c := range found {
		if c.Type != "" && c.Type != "collection" {
			return s.unfit("is a %s and no collection", c.Type)
		}
		if capped, _ := c.Options.Lookup("capped").BooleanOK(); capped {
			return s.unfit("is capped, so that documents can't be removed")
		}
		locale, has := c.Options.Lookup("collation", "locale").StringValueOK()
		if has && locale != "simple" {
			return s.unfit("has the collation %q, which may take different keys for one", locale)
		}
	}
	return nil
}

func (s *store) checkIndexes(ctx context.Context) error {
	cursor, err := s.coll.Indexes().List(ctx)
	if err != nil {
		return explain("check", err)
	}
	var indexes []struct {
		Name    string `bson:"name"`
		Key     bson.D `bson:"key"`
		Unique  bool   `bson:"unique"`
		Expires any    `bson:"expireAfterSeconds"`
	}
	if err := cursor.All(ctx, &indexes); err != nil {
		return explain("check", err)
	}
	for _, i := range indexes {
		onID := slices.ContainsFunc(i.Key, func(e bson.E) bool { return e.Key == "_id" })
		switch {
		case i.Unique && !onID:
			return s.unfit("has a unique index %s: two locks can't have the same value there", i.Name)
		case i.Expires != nil && s.tokens:
			return s.unfit("has an index %s that removes documents by themselves: tokens would begin again at 1", i.Name)
		}
	}
	return nil
}

func (s *store) unfit(format string, args ...any) error {
	return fmt.Errorf("mongolock: %w: the collection %s %s", lock.ErrRefused, s.coll.Name(), fmt.Sprintf(format, args...))
}
