package sqllock

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/latchkey-go/latchkey/lock"
)

// class is the meaning of a database error for a lock.
type class int

const (
	outage      class = iota // the statement may have run, or not
	refusal                  // nobody should wait: a fault of the program or of the database's setup
	conflict                 // nothing was done, because others were at the row
	duplicate                // nothing was done, as the name has a row already
	wrongServer              // nothing was done: the connection leads to a server that can't be written, or is not ready
	closing                  // the connection ends; the statement may have run, or not
)

// class returns the class of err by the code that the database gave it.
func (s *store) class(err error) class {
	switch c := codeOf(err); {
	case errors.Is(err, driver.ErrBadConn):
		return closing
	case errors.Is(err, errReadOnly):
		return wrongServer
	case s.on == PostgreSQL:
		return postgresClass(c.text)
	case s.on == SQLite:
		return sqliteClass(c.number)
	case c.number == noSuchTime && s.zoned():
		return outage
	default:
		return mysqlClass(c.number)
	}
}

// noSuchTime is MySQL's error for a time that it can't put into a column.
const noSuchTime = 1292

// zoned reports whether the end of a lease is a TIMESTAMP of MySQL. We write it as a time of UTC, which it takes for one of the session's
// time zone, as ShedLock does. So there is none for the hour that this zone skips when summer time begins.
func (s *store) zoned() bool {
	f := s.facts.Load()
	return f != nil && !f.last.IsZero()
}

// passes reports whether the same question may get another answer at once.
func (s *store) passes(err error) bool {
	c := s.class(err)
	return c == conflict || c == duplicate
}

// explain returns err as package lock wants it, with what to do about a refusal.
func (s *store) explain(err error) error {
	if err == nil || errors.Is(err, lock.ErrBusy) || errors.Is(err, lock.ErrRefused) {
		return err
	}
	if s.class(err) != refusal {
		return fmt.Errorf("sqllock: table %s: %w%s", s.table, err, s.advice(codeOf(err)))
	}
	return fmt.Errorf("%w: sqllock: table %s: %w%s", lock.ErrRefused, s.table, err, s.advice(codeOf(err)))
}

// advice says what to do about the errors that are easily mended.
func (s *store) advice(c code) string {
	switch {
	case c.text == "42P05", c.text == "26000": // behind a pooler
		return "; behind a pooler give pgx default_query_exec_mode=exec, or have the pooler keep prepared statements"
	case c.text == "42501", c.number == 1142 && s.on == MySQL:
		return "; GRANT SELECT, INSERT, UPDATE ON " + s.table
	case s.on == MySQL && c.number == noSuchTime && s.zoned():
		return fmt.Sprintf("; the time zone of the session skips this hour: ALTER TABLE %s MODIFY %s DATETIME(3) NOT NULL", s.table, s.columns.until)
	}
	return ""
}

// ofPgBouncer is the code of all that PgBouncer says by itself: that it does not know a database or a user, and that it has no server now.
const ofPgBouncer = "08P01"

// postgresClass knows SQLSTATEs; see the appendix "Error Codes" of PostgreSQL's documentation.
func postgresClass(state string) class {
	switch state {
	case "40001", "40P01", "55P03": // serialization failure, deadlock, lock not available
		return conflict
	case "23505": // unique violation
		return duplicate
	case "25006", "57P03": // read-only transaction, cannot connect now
		return wrongServer
	case "57P01", "57P02", "57P05", "08003", "08006": // shutdown, crash, idle for too long; no connection, connection failure
		return closing
	}
	for _, prefix := range []string{"0A", "22", "23", "28", "3D", "3F", "42"} {
		if strings.HasPrefix(state, prefix) {
			return refusal
		}
	}
	return outage
}

// mysqlClass knows the numbers of MySQL's and MariaDB's errors.
func mysqlClass(number int64) class {
	switch number {
	case 1205, 1213, 1020, 3572: // lock wait timeout, deadlock, changed since last read, NOWAIT
		return conflict
	case 1062:
		return duplicate
	case 1047, 1290, 1792, 1836, 3032: // not yet in the cluster, read-only, offline
		return wrongServer
	case 1053, 1927: // shutdown of the server, connection killed
		return closing
	case 1044, 1045, 1142, 1143, 1227, 1370, 1698, // access denied
		1046, 1049, 1051, 1054, 1064, 1109, 1146, // no such database, column, table; syntax
		1048, 1264, 1265, noSuchTime, 1364, 1366, 1406, 4025, 3819: // a value that does not fit
		return refusal
	}
	return outage
}

// sqliteClass knows SQLite's result codes, plain and extended.
func sqliteClass(number int64) class {
	switch number {
	case 1555, 2067: // of a primary key, of another unique one
		return duplicate
	}
	switch number & 0xff {
	case 5, 6: // busy, locked
		return conflict
	case 1, 3, 8, 11, 19, 20, 23, 25, 26: // error, perm, readonly, corrupt, constraint, mismatch, auth, range, notadb
		return refusal
	}
	return outage
}

// code is what a database calls an error: by a text in PostgreSQL, by a number elsewhere.
type code struct {
	text   string
	number int64
}

// codeOf finds the code in a driver's error. Drivers are no dependency of this package, so their errors are known by their
// shape: those of pgx and lib/pq have a method SQLState, modernc's a method Code; go-sql-driver's have a field Number, and
// mattn's the fields Code and ExtendedCode.
func codeOf(err error) code {
	if e, ok := errors.AsType[interface {
		error
		SQLState() string
	}](err); ok {
		return code{text: e.SQLState()}
	}
	if e, ok := errors.AsType[interface {
		error
		Code() int
	}](err); ok {
		return code{number: int64(e.Code())}
	}
	return code{number: numberIn(err)}
}

// numberIn looks for a field with a code in err and what it wraps.
func numberIn(err error) int64 {
	for err != nil {
		if many, ok := err.(interface{ Unwrap() []error }); ok {
			for _, e := range many.Unwrap() {
				if n := numberIn(e); n != 0 {
					return n
				}
			}
			return 0
		}
		if n := field(reflect.Indirect(reflect.ValueOf(err))); n != 0 {
			return n
		}
		err = errors.Unwrap(err)
	}
	return 0
}

func field(v reflect.Value) int64 {
	if v.Kind() != reflect.Struct {
		return 0
	}
	for _, name := range []string{"Number", "ExtendedCode", "Code"} {
		switch f := v.FieldByName(name); {
		case !f.IsValid():
		case f.CanInt():
			return f.Int()
		case f.CanUint():
			return int64(f.Uint() & 0xffff)
		}
	}
	return 0
}
