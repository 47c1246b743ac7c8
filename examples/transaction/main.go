// Transaction puts a guard around a database transaction, and a fencing token into the row that it protects.
//
//	go -C examples run ./transaction                                   # with locks of this process
//	go -C examples run ./transaction --redis redis://localhost:6379     # with locks that other machines see
//
// The guard stands outside of the commit: a lock that is given back before the commit lets the next caller read what is not
// there yet. The token is for the rest of the risk. A process that stood still past its lease goes on when another has the
// lock, and only the database can refuse what it then writes.
package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	_ "modernc.org/sqlite" // the driver

	"github.com/latchkey-go/latchkey/examples/internal/example"
	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/lock"
)

func main() {
	example.Main(func(ctx context.Context, locker lock.Locker, out io.Writer) error {
		db, err := open(":memory:")
		if err != nil {
			return err
		}
		defer db.Close()
		return run(ctx, locker, db, out)
	})
}

// Payment is a request to take Cents off an account.
type Payment struct {
	Account string
	Cents   int64
}

var (
	errFunds = errors.New("not enough on the account")
	// errStale says that somebody with a newer token has written the row: this call's lock was over.
	errStale = errors.New("written by a newer holder of the lock")
)

// open makes the table of accounts. The token is that of the last holder who wrote the row.
func open(name string) (*sql.DB, error) {
	db, err := sql.Open("sqlite", name)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1) // a database in memory belongs to its connection
	_, err = db.Exec(`create table account (id text primary key, cents integer not null, token integer not null);
		insert into account values ('alice', 100000, 0)`)
	return db, err
}

// read takes no lock in the database, so that two transactions that read one balance would both write theirs.
func read(ctx context.Context, db *sql.DB, account string) (cents int64, err error) {
	err = db.QueryRowContext(ctx, "select cents from account where id = ?", account).Scan(&cents)
	return cents, err
}

// pay runs under the guard, from the read to the commit.
func pay(db *sql.DB) func(context.Context, Payment) error {
	return func(ctx context.Context, p Payment) error {
		token, ok := guard.Token(ctx)
		if !ok {
			return errors.New("pay needs a guard with a fencing token")
		}
		cents, err := read(ctx, db, p.Account)
		if err != nil {
			return err
		}
		if cents < p.Cents {
			return errFunds
		}
		return write(ctx, db, p.Account, cents-p.Cents, token)
	}
}

// write changes the row unless a newer token is there, and commits.
func write(ctx context.Context, db *sql.DB, account string, cents, token int64) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // does nothing after the commit
	res, err := tx.ExecContext(ctx, "update account set cents = ?, token = ? where id = ? and token <= ?", cents, token, account, token)
	if err != nil {
		return err
	}
	if n, err := res.RowsAffected(); err != nil || n == 0 {
		return errors.Join(errStale, err)
	}
	return tx.Commit()
}

const payments = 200

func run(ctx context.Context, locker lock.Locker, db *sql.DB, out io.Writer) error {
	g, err := guard.New(locker, guard.Name("account.pay"), guard.Key("account:#{req.Account}"), guard.Fenced(), guard.Wait(time.Minute))
	if err != nil {
		return err
	}
	guarded, err := guard.Action(g, pay(db))
	if err != nil {
		return err
	}
	failures := make([]error, payments)
	var all sync.WaitGroup
	for i := range payments {
		all.Go(func() { failures[i] = guarded(ctx, Payment{Account: "alice", Cents: 100}) })
	}
	all.Wait()
	cents, err := read(ctx, db, "alice")
	fmt.Fprintf(out, "%d payments of 1.00 from 1000.00 leave %d.%02d\n", payments, cents/100, cents%100)
	return errors.Join(append(failures, err)...)
}
