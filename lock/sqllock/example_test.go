package sqllock_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/sqllock"
)

// openFile opens a database in a directory of its own.
func openFile() (db *sql.DB, remove func()) {
	dir, err := os.MkdirTemp("", "sqllock-example-")
	if err != nil {
		log.Fatal(err)
	}
	db, err = sql.Open("sqlite", sqliteIn(filepath.Join(dir, "locks.db")))
	if err != nil {
		log.Fatal(err)
	}
	return db, func() {
		_ = db.Close()
		_ = os.RemoveAll(dir)
	}
}

func Example() {
	ctx := context.Background()
	db, remove := openFile()
	defer remove()

	locker, err := sqllock.New(db, sqllock.SQLite)
	if err != nil {
		log.Fatal(err)
	}
	if err := locker.CreateTable(ctx); err != nil {
		log.Fatal(err)
	}
	hold, err := locker.Acquire(ctx, lock.Request{Key: "order:42", Wait: 2 * time.Second})
	if err != nil {
		log.Fatal(err)
	}
	_, err = locker.Acquire(ctx, lock.Request{Key: "order:42"})
	fmt.Println("somebody else:", errors.Is(err, lock.ErrBusy))
	fmt.Println("released:", hold.Release(ctx))
	// Output:
	// somebody else: true
	// released: <nil>
}

func ExampleCheck() {
	ctx := context.Background()
	db, remove := openFile()
	defer remove()
	locker, err := sqllock.New(db, sqllock.SQLite)
	if err != nil {
		log.Fatal(err)
	}
	if err := locker.CreateTable(ctx); err != nil {
		log.Fatal(err)
	}
	if _, err := db.ExecContext(ctx, "CREATE TABLE payments (order_id INTEGER)"); err != nil {
		log.Fatal(err)
	}

	pay := func(ctx context.Context, order int) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }()
		if _, err := tx.ExecContext(ctx, "INSERT INTO payments VALUES (?)", order); err != nil {
			return err
		}
		if err := sqllock.Check(ctx, tx); err != nil { // the lock is still ours, and stays so until the commit
			return err
		}
		return tx.Commit()
	}

	hold, err := locker.Acquire(ctx, lock.Request{Key: "order:42"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("under the lock:", pay(hold.Context(), 42))
	// An operator frees the lock by hand, and the holder has not heard of it.
	if _, err := db.ExecContext(ctx, "UPDATE shedlock SET lock_until = 0"); err != nil {
		log.Fatal(err)
	}
	fmt.Println("after the loss:", errors.Is(pay(hold.Context(), 42), lock.ErrLost))
	_ = hold.Release(ctx)
	// Output:
	// under the lock: <nil>
	// after the loss: true
}

func ExampleLocker_Schema() {
	db, remove := openFile()
	defer remove()
	locker, err := sqllock.New(db, sqllock.MySQL, sqllock.Table("jobs"))
	if err != nil {
		log.Fatal(err)
	}
	for _, statement := range locker.Schema() {
		fmt.Println(statement + ";")
	}
	// Output:
	// CREATE TABLE IF NOT EXISTS jobs (
	//     name       VARCHAR(64)  CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL PRIMARY KEY,
	//     lock_until DATETIME(3)  NOT NULL,
	//     locked_at  DATETIME(3)  NOT NULL,
	//     locked_by  VARCHAR(255) NOT NULL,
	//     token      BIGINT       NOT NULL DEFAULT 0
	// ) ENGINE = InnoDB;
}
