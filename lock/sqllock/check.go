package sqllock

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/leases"
)

// Check makes the end of a transaction safe: if it returns nil, nobody else can have the locks that ctx holds until tx has ended.
// So what tx commits was written under the locks, however long the process may be stopped between Check and Commit. It is what a
// fencing token is elsewhere, and asks nothing of the tables that are written.
//
//	tx, err := db.BeginTx(hold.Context(), nil)
//	…
//	defer tx.Rollback()
//	… // the work
//	if err := sqllock.Check(hold.Context(), tx); err != nil {
//		return err
//	}
//	return tx.Commit()
//
// The locks are the live holds of this package's Lockers among the Ancestors of ctx. Their tables must be in the database of tx. Check
// returns ErrLost if one of them is held no longer, and ErrNotHeld if ctx holds none; roll back then. Any other error is one of the
// database, such as a serialization failure, after which tx can't commit either.
//
// Call it last before Commit: it locks the row of the lock, so that a renewal has to wait until tx ends, and so have those who would
// take the lock meanwhile. In SQLite tx is the one writer from then on.
func Check(ctx context.Context, tx *sql.Tx) error {
	if tx == nil {
		return errors.New("sqllock: Check: no transaction given")
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	checked := 0
	for h := range lock.Ancestors(ctx) {
		p, id := placeIn(h)
		if p == nil {
			continue
		}
		if err := p.check(ctx, tx, id); err != nil {
			return err
		}
		checked++
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if checked == 0 {
		return fmt.Errorf("sqllock: Check: %w: there is no hold above this context; pass that of the hold", lock.ErrNotHeld)
	}
	return nil
}

// placeIn returns what a hold has in a table, or nil if it is not of this package.
func placeIn(h lock.Hold) (p *place, id string) {
	e := leases.EntryOf(h)
	if e == nil {
		return nil, ""
	}
	p, _ = e.Data.(*place)
	return p, e.ID
}

// check locks the row in tx, if it is still that of id.
func (p *place) check(ctx context.Context, tx *sql.Tx, id string) error {
	s := p.store
	var one int
	err := tx.QueryRowContext(ctx, s.check.text, s.check.values(arguments{"name": p.name, "id": id})...).Scan(&one)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return fmt.Errorf("sqllock: Check: %w: the row in table %s is not that of this hold", lock.ErrLost, s.table)
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return s.explain(err)
}
