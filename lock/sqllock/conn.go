package sqllock

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"

	"github.com/latchkey-go/latchkey/lock"
)

// errReadOnly is the answer of a server that can be read and not written, where reading alone would not show it.
var errReadOnly = errors.New("the server is read-only")

// noWriter is how long no question makes a new connection after one has led to the wrong server.
const noWriter = 200 * time.Millisecond

// do asks a question on a connection of the pool. If that leads to the wrong server, do closes it and asks on the next one, at once while
// there may be connections from before the server was demoted. If a new one leads there, too, that is the answer, and package leases
// pauses. A connection that the server ends is replaced in the same way, as any question may be repeated.
//
// The doubt is an error after which the question may have been done nevertheless.
func (s *store) do(ctx context.Context, question func(c *sql.Conn) error) (doubt, err error) {
	again := true
	for old := s.db.Stats().OpenConnections; again; old-- {
		pool := s.db.Stats()
		again, err = s.once(ctx, question, old <= 0 || pool.Idle == 0 && pool.OpenConnections != pool.MaxOpenConnections)
		switch s.class(err) {
		case closing:
			doubt = err
		case wrongServer:
			err = cmp.Or(doubt, err)
		}
	}
	return doubt, err
}

// once asks on one connection, and reports whether to ask on another one. If fresh is true, the connection is a new one.
func (s *store) once(ctx context.Context, question func(c *sql.Conn) error, fresh bool) (again bool, err error) {
	c, err := s.db.Conn(ctx)
	if err != nil {
		if codeOf(err).text == ofPgBouncer && s.facts.Load() == nil { // it has never let us in
			err = fmt.Errorf("%w: sqllock: %w; see PgBouncer's databases, users and ignore_startup_parameters", lock.ErrRefused, err)
		}
		return false, err
	}
	defer c.Close()
	err = question(c)
	switch s.class(err) {
	case wrongServer:
		again = !fresh && !s.pausing.Load()
		if fresh && s.pausing.CompareAndSwap(false, true) {
			time.AfterFunc(noWriter, func() { s.pausing.Store(false) })
		}
	case closing:
		again = !fresh
	}
	if again {
		_ = c.Raw(func(any) error { return driver.ErrBadConn }) // has the pool close it
	}
	return again, err
}
