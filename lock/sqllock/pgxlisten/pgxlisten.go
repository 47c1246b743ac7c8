// Package pgxlisten lets a Locker of sqllock hear PostgreSQL's messages through pgx.
package pgxlisten

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/latchkey-go/latchkey/lock/sqllock"
)

// From returns a Listener that uses a connection of db, which must be one of pgx: opened with the driver name pgx, or with package
// stdlib. While somebody waits for a lock, db has one connection less for others. A pooler in front of the database must leave the
// connection to its session; PgBouncer's transaction mode does not, so give From a db that goes past it.
func From(db *sql.DB) sqllock.Listener {
	return func(ctx context.Context, channel string, listening func(), heard func(payload string)) error {
		c, err := db.Conn(ctx)
		if err != nil {
			return err
		}
		defer c.Close()
		return c.Raw(func(driver any) error {
			own, ok := driver.(*stdlib.Conn)
			if !ok {
				return fmt.Errorf("pgxlisten: %T is no connection of pgx", driver)
			}
			return listen(ctx, own.Conn(), channel, listening, heard)
		})
	}
}

// listen returns when ctx ends or the connection breaks. It ends the connection, because a pool would give it to others
// who do not want the messages.
func listen(ctx context.Context, c *pgx.Conn, channel string, listening func(), heard func(string)) error {
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = c.Close(ctx)
	}()
	if _, err := c.Exec(ctx, "LISTEN "+pgx.Identifier{channel}.Sanitize()); err != nil {
		return err
	}
	listening()
	for {
		n, err := c.WaitForNotification(ctx)
		if err != nil {
			return err
		}
		heard(n.Payload)
	}
}
