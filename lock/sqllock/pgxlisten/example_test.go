package pgxlisten_test

import (
	"database/sql"
	"fmt"
	"log"
	"time"

	"github.com/latchkey-go/latchkey/lock/sqllock"
	"github.com/latchkey-go/latchkey/lock/sqllock/pgxlisten"
)

func ExampleFrom() {
	db, err := sql.Open("pgx", "postgres://app@db/app")
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	locker, err := sqllock.New(db, sqllock.PostgreSQL,
		sqllock.Listen(pgxlisten.From(db)),
		sqllock.Poll(time.Second, time.Second)) // messages come at once; this is for those that get lost
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(locker.Schema()), "statements make the table and its trigger")
	// Output: 3 statements make the table and its trigger
}
