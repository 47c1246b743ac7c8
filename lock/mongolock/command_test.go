package mongolock_test

import (
	"context"
	"slices"
	"sync"
	"testing"

	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"

	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/mongolock"
)

// commands are what a client has sent.
type commands struct {
	mu     sync.Mutex
	names  []string
	majors int // with write concern majority and journal
}

func (c *commands) started(_ context.Context, e *event.CommandStartedEvent) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.names = append(c.names, e.CommandName)
	w, _ := e.Command.Lookup("writeConcern", "w").StringValueOK()
	j, _ := e.Command.Lookup("writeConcern", "j").BooleanOK()
	if w == "majority" && j {
		c.majors++
	}
}

func (c *commands) take() (names []string, majors int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	names, majors, c.names, c.majors = c.names, c.majors, nil, 0
	return names, majors
}

// An uncontended pair is two commands. All that writes has the concern of a majority, also if the collection was made with another.
func TestRoundTripsAndConcerns(t *testing.T) {
	forEachClock(t, func(t *testing.T, coll *mongo.Collection, opts []mongolock.Option) {
		var sent commands
		client := connect(t, serverURI(t), func(o *options.ClientOptions) { o.SetMonitor(&event.CommandMonitor{Started: sent.started}) })
		careless := options.Collection().SetWriteConcern(writeconcern.W1()).SetReadPreference(readpref.SecondaryPreferred())
		locker := newLocker(t, client.Database(database).Collection(coll.Name(), careless), opts...)
		pair, busy := []string{"findAndModify", "delete"}, []string{"findAndModify"}
		if len(opts) > 1 {
			pair, busy = []string{"hello", "findAndModify", "hello", "delete"}, []string{"hello", "findAndModify", "find"}
		}
		acquire := func(key string) lock.Hold {
			hold, err := locker.Acquire(t.Context(), lock.Request{Key: key})
			if err != nil {
				t.Fatal(err)
			}
			return hold
		}
		if err := acquire("k").Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		if names, majors := sent.take(); !slices.Equal(names, pair) || majors != 2 {
			t.Errorf("a pair is %v, %d of them with majority", names, majors)
		}
		hold, err := newLocker(t, coll).Acquire(t.Context(), lock.Request{Key: "k"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := locker.Acquire(t.Context(), lock.Request{Key: "k"}); err == nil {
			t.Error("two have the lock")
		}
		if names, majors := sent.take(); !slices.Equal(names, busy) || majors != 1 {
			t.Errorf("a try that finds the lock busy is %v, %d of them with majority", names, majors)
		}
		if err := hold.(extender).Extend(t.Context(), 1); err != nil {
			t.Error(err)
		}
		if err := hold.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
