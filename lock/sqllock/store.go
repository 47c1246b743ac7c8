package sqllock

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/latchkey-go/latchkey/internal/clock"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/leases"
)

// store is the table as package leases wants it. It changes a row by one statement of its own transaction, so it needs
// nothing of a connection and works behind a pooler.
type store struct {
	db *sql.DB
	*dialect
	settings
	facts atomic.Pointer[facts] // of the table, once it was found to be right
	// pausing is true for a while after a new connection has led to the wrong server.
	pausing atomic.Bool
}

var _ leases.Peeker = (*store)(nil)

// released is the text that a release adds to locked_by. A copy of the statement that took the lock, if it is late,
// finds that and does nothing.
const released = " released"

// place is an Entry's row in the table. It is the Entry's Data.
type place struct {
	store *store
	name  string
}

// row is the row of a name.
type row struct {
	taken bool // by the question itself
	there bool
	by    sql.NullString
	rest  time.Duration // how long its lease goes on; negative if it is over
	token int64
}

// tries bounds how often Take looks again because the row was another one than it had seen.
const tries = 8

// Take implements [leases.Store].
func (s *store) Take(ctx context.Context, e *leases.Entry, d time.Duration) (leases.Grant, error) {
	f, err := s.ready(ctx)
	if err != nil {
		return leases.Grant{}, err
	}
	name, err := s.name(f, e.Key)
	if err != nil {
		return leases.Grant{}, err
	}
	e.Data = &place{s, name}
	d = f.bound(d)
	a := s.arguments(f, name, e.ID, d)
	for seen, pause := 0, firstPause; seen < tries; pause = min(2*pause, longestPause) {
		g, done, err := s.takeOnce(ctx, a, d)
		switch {
		case done || err != nil && !s.passes(err):
			if pause == firstPause && s.class(err) == wrongServer {
				e.Data = nil // there is nothing to free
			}
			return g, s.explain(err)
		case !clock.Sleep(ctx, pause+rand.N(pause)):
			return leases.Grant{}, s.explain(errors.Join(context.Cause(ctx), err))
		case err == nil:
			seen++
		}
	}
	return leases.Grant{}, &lock.BusyError{} // somebody else is at it, over and over
}

// takeOnce reports with done that it has the answer. Without, things have changed on the way.
func (s *store) takeOnce(ctx context.Context, a arguments, d time.Duration) (g leases.Grant, done bool, err error) {
	sent := time.Now() // the first Take has asked for the table before
	r, err := s.first(ctx, a)
	if err != nil {
		return g, false, err
	}
	g = leases.Grant{Lease: d, Token: r.token, Since: sent}
	switch {
	case r.taken:
		return g, true, nil
	case !r.there:
		if s.fencing {
			g.Token = 1
		}
		done, err = s.insertRow(ctx, a)
		return g, done, err
	case r.by.String == a["id"]:
		_, err = s.exec(ctx, s.regrant, a)
		if err == nil && r.rest > 0 { // which may not have changed
			g.Lease = min(d, r.rest)
		}
		return g, err == nil && r.rest > 0, err
	case r.rest > 0, r.by.String == a["freed"]:
		return leases.Grant{}, true, s.busy(r)
	case s.take != nil:
		return g, false, nil // free, but in somebody's transaction
	}
	a["token"] = r.token
	n, err := s.exec(ctx, s.claim, a)
	if s.fencing {
		g.Token++
	}
	return g, n > 0, err
}

// insertRow reports whether it made the row. If somebody else did at the same time, that is no error.
func (s *store) insertRow(ctx context.Context, a arguments) (bool, error) {
	n, err := s.exec(ctx, s.insert, a)
	if err != nil && s.class(err) == duplicate {
		return false, nil
	}
	return n > 0, err
}

// Extend implements [leases.Store].
func (s *store) Extend(ctx context.Context, e *leases.Entry, d time.Duration) (time.Duration, error) {
	p, f, err := s.placeOf(e)
	if err != nil {
		return 0, err
	}
	d = f.bound(d)
	a := s.arguments(f, p.name, e.ID, d)
	n, err := s.repeat(ctx, s.extend, a)
	switch {
	case err != nil:
		return 0, s.explain(err)
	case n > 0:
		return d, nil
	case s.on != MySQL:
		return 0, lock.ErrNotHeld
	}
	r, err := s.see(ctx, a, true) // MySQL may count what has changed, and a lease that is long enough does not change
	switch {
	case err != nil:
		return 0, s.explain(err)
	case r.by.String == e.ID && r.rest > 0:
		return min(d, r.rest), nil
	}
	return 0, lock.ErrNotHeld
}

// Free implements [leases.Store]. It leaves the row, as ShedLock does.
func (s *store) Free(ctx context.Context, e *leases.Entry, keep time.Duration) error {
	p, f, err := s.placeOf(e)
	if err != nil {
		return err
	}
	st := s.free
	if keep > 0 {
		st = s.keep
	}
	a := s.arguments(f, p.name, e.ID, f.bound(keep))
	n, err := s.repeat(ctx, st, a)
	if err != nil || n > 0 {
		return s.explain(err)
	}
	// MySQL counts the rows that a statement has changed. A repetition within the same millisecond changes none.
	if r, err := s.see(ctx, a, true); err != nil || keep > 0 && r.there && r.rest > 0 && r.by.String == a["freed"] {
		return s.explain(err)
	}
	return lock.ErrNotHeld
}

// Peek implements [leases.Peeker].
func (s *store) Peek(ctx context.Context, e *leases.Entry) error {
	f, err := s.ready(ctx)
	if err != nil {
		return err
	}
	name, err := s.name(f, e.Key)
	if err != nil {
		return err
	}
	r, err := s.see(ctx, s.arguments(f, name, e.ID, 0), false)
	if err == nil && r.there && r.rest > 0 {
		return s.busy(r)
	}
	return s.explain(err)
}

// busy leaves out of the rest what was added to the lease.
func (s *store) busy(r row) error {
	return &lock.BusyError{Remaining: max(r.rest-s.facts.Load().unit, 0)}
}

// placeOf returns where e is. An entry for which no Take came so far as to ask the database is nowhere.
func (s *store) placeOf(e *leases.Entry) (*place, *facts, error) {
	p, ok := e.Data.(*place)
	if !ok {
		return nil, nil, lock.ErrNotHeld
	}
	return p, s.facts.Load(), nil
}

// arguments are those of all statements on a row. Leases in a column that is less than exact are longer by its unit, whichever way the
// database rounds.
func (s *store) arguments(f *facts, name, id string, d time.Duration) arguments {
	return arguments{"name": name, "id": id, "freed": id + released, "token": int64(0),
		"lease": (d + time.Microsecond - 1 + f.unit).Microseconds(), "slack": f.unit.Microseconds()}
}

// first takes the row where that is one statement with looking at it, or looks.
func (s *store) first(ctx context.Context, a arguments) (row, error) {
	if s.take == nil {
		return s.see(ctx, a, true)
	}
	var r row
	var rest sql.NullInt64
	_, err := s.do(ctx, func(c *sql.Conn) error {
		return c.QueryRowContext(ctx, s.take.text, s.take.values(a)...).Scan(&r.taken, &r.by, &rest, &r.token)
	})
	if err == nil {
		s.pausing.Store(false)
	}
	return r.found(rest, err)
}

// see returns the row as it is. If the answer decides something, it should be that of a server that can be written: another one may not hear
// of what has happened since. If there is none, what comes next will fail.
func (s *store) see(ctx context.Context, a arguments, decides bool) (row, error) {
	var r row
	var rest sql.NullInt64
	_, err := s.do(ctx, func(c *sql.Conn) error {
		var readOnly bool
		err := c.QueryRowContext(ctx, s.look.text, s.look.values(a)...).Scan(&r.by, &rest, &r.token, &readOnly)
		if readOnly && decides {
			return errReadOnly
		}
		return err
	})
	if errors.Is(err, errReadOnly) {
		err = nil
	}
	return r.found(rest, err)
}

// found completes r with the rest of its lease.
func (r row) found(rest sql.NullInt64, err error) (row, error) {
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return row{}, nil
	case err != nil:
		return row{}, err
	case !r.taken && !rest.Valid:
		return row{}, fmt.Errorf("%w: sqllock: the row of this name has no end of the lease that can be read; set it or delete the row", lock.ErrRefused)
	}
	r.there, r.rest = true, time.Duration(rest.Int64)*time.Microsecond
	return r, nil
}

// exec runs a statement, and returns how many rows it has changed.
func (s *store) exec(ctx context.Context, st *statement, a arguments) (n int64, err error) {
	doubt, err := s.do(ctx, func(c *sql.Conn) error {
		result, err := c.ExecContext(ctx, st.text, st.values(a)...)
		if err == nil {
			s.pausing.Store(false)
			n, err = result.RowsAffected()
		}
		return err
	})
	if n == 0 && doubt != nil && a != nil && s.class(err) != duplicate { // what makes a table changes no rows
		err = doubt
	}
	return n, err
}

// repeat is exec, but goes on, as long as ctx does, after errors which say that nothing was done because of others.
func (s *store) repeat(ctx context.Context, st *statement, a arguments) (n int64, err error) {
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		n, err = s.exec(ctx, st, a)
		if err == nil || !s.passes(err) || !clock.Sleep(ctx, pause+rand.N(pause)) {
			return n, err
		}
	}
}

const (
	firstPause   = time.Millisecond
	longestPause = 32 * time.Millisecond
)
