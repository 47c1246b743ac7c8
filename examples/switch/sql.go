package main

import (
	"context"
	"database/sql"
	"os"
	"path/filepath"

	_ "github.com/go-sql-driver/mysql" // the driver "mysql"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
	_ "modernc.org/sqlite"             // the driver "sqlite"

	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/sqllock"
)

func openPostgres(ctx context.Context, addr string) (lock.Locker, func() error, error) {
	return openSQL(ctx, "pgx", addr, sqllock.PostgreSQL)
}

func openMySQL(ctx context.Context, addr string) (lock.Locker, func() error, error) {
	return openSQL(ctx, "mysql", addr, sqllock.MySQL)
}

func openSQLite(ctx context.Context, file string) (lock.Locker, func() error, error) {
	source := "file:" + file + "?_pragma=busy_timeout(2000)&_pragma=journal_mode(WAL)&_pragma=synchronous(NORMAL)&_txlock=immediate"
	return openSQL(ctx, "sqlite", source, sqllock.SQLite)
}

// openSQL uses the table shedlock, and makes it if there is none.
func openSQL(ctx context.Context, driver, source string, on sqllock.Database) (lock.Locker, func() error, error) {
	db, err := sql.Open(driver, source)
	if err != nil {
		return nil, nil, err
	}
	locker, err := sqllock.New(db, on)
	if err == nil {
		err = locker.CreateTable(ctx)
	}
	if err != nil {
		_ = db.Close()
		return nil, nil, err
	}
	return locker, db.Close, nil
}

// startSQLite returns a file that is removed at the end.
func startSQLite() (string, func(), error) {
	dir, err := os.MkdirTemp("", "latchkey-switch-")
	if err != nil {
		return "", nil, err
	}
	return filepath.Join(dir, "locks.db"), func() { _ = os.RemoveAll(dir) }, nil
}
