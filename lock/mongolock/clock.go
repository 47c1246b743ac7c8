package mongolock

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"
)

// believed is how long an answer about the server's clock counts; calls ask about a busy lock more often than that.
const believed = time.Minute

// clock is an estimate of the server's. It serves the remaining times in the errors of busy callers; a question that
// needs the time uses the result of read.
type clock struct {
	admin *mongo.Database
	old   atomic.Bool // the server has no hello, but isMaster

	mu     sync.Mutex
	server time.Time
	at     time.Time // when the question was sent whose answer server is
}

// read asks the primary, or the mongos, for its time.
func (c *clock) read(ctx context.Context) (time.Time, error) {
	asked := time.Now()
	var answer struct {
		LocalTime time.Time `bson:"localTime"`
	}
	name := "hello"
	if c.old.Load() {
		name = "isMaster"
	}
	err := c.admin.RunCommand(ctx, doc(name, 1), options.RunCmd().SetReadPreference(readpref.Primary())).Decode(&answer)
	switch {
	case has(err, commandNotFound) && name == "hello":
		c.old.Store(true)
		return c.read(ctx)
	case err != nil:
		return time.Time{}, err
	}
	if answer.LocalTime.IsZero() {
		return time.Time{}, errNoTime
	}
	c.set(answer.LocalTime, asked)
	return answer.LocalTime, nil
}

func (c *clock) set(server, asked time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if asked.After(c.at) {
		c.server, c.at = server, asked
	}
}

func (c *clock) fresh() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.at.IsZero() && time.Since(c.at) < believed
}

// rounding is the time that millis may add to a lease.
const rounding = 2 * time.Millisecond

// rest returns how long it is until a time of the server's clock, or 0 if that is not known.
func (c *clock) rest(until time.Time) time.Duration {
	if !c.fresh() {
		return 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return max(until.Sub(c.server)-time.Since(c.at)-rounding, time.Millisecond)
}
