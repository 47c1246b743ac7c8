package sqllock

import (
	"database/sql"
	"errors"
	"fmt"

	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/leases"
)

// Database is a sort of database.
type Database int

const (
	// PostgreSQL is version 12 or later.
	PostgreSQL Database = iota + 1
	// MySQL is version 8.0 or later, and MariaDB 10.5 or later. With go-sql-driver's setting interpolateParams=true each question is
	// one round trip instead of two.
	MySQL
	// SQLite is version 3.42 or later. Give its driver a busy timeout, and no database in memory, which each connection has for itself.
	SQLite
)

// String returns the name of the database.
func (d Database) String() string {
	switch d {
	case PostgreSQL:
		return "PostgreSQL"
	case MySQL:
		return "MySQL"
	case SQLite:
		return "SQLite"
	}
	return fmt.Sprintf("database(%d)", int(d))
}

// Locker is a [lock.Locker] on a table. Create one with New. It is safe for concurrent use and needs no closing; what it does in the
// background ends soon after the last hold and the last waiter.
type Locker struct {
	*leases.Locker
	store *store
}

var _ lock.Locker = (*Locker)(nil)

// New returns a Locker on the table shedlock of db, or on that of the option [Table]. The caller owns db and closes it after the last
// hold. New asks the database nothing. The first Acquire looks at the table, and returns ErrRefused with what to do about it if it can't
// serve; call [Locker.CheckTable] to know that when the program starts, or [Locker.CreateTable] to have a table in any case.
//
// A question takes a connection of db, so a db whose connections are all in use by the guarded work can't renew. Give a db with
// SetMaxOpenConns as many more as there are holds that are renewed at a time, or give locks a db of their own.
func New(db *sql.DB, on Database, opts ...Option) (*Locker, error) {
	if db == nil {
		return nil, errors.New("sqllock: no database given")
	}
	set, err := newSettings(on, opts)
	if err != nil {
		return nil, err
	}
	d, err := newDialect(on, &set)
	if err != nil {
		return nil, err
	}
	s := &store{db: db, dialect: d, settings: set}
	var as leases.Store = s
	if set.listen != nil {
		as = watchedStore{s, newHub(set.listen, set.channel())}
	}
	l, err := leases.New(as, set.leaseOptions()...)
	if err != nil {
		return nil, err
	}
	return &Locker{l, s}, nil
}
