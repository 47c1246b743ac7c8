// Package sqllock keeps locks in a table of PostgreSQL, MySQL, MariaDB or SQLite. The table is that of ShedLock, so that a Java service with
// ShedLock's JDBC provider and a Go service exclude each other.
//
//	db, err := sql.Open("pgx", dsn)
//	…
//	locker, err := sqllock.New(db, sqllock.PostgreSQL)
//	…
//	err = locker.CreateTable(ctx) // or CheckTable, where the table is made by other means
//
// A lock is a row with the end of a lease, by the clock of the database. It serves the kinds Exclusive and Spin, and with the option
// [Fencing] also Fenced. Waiters poll; with PostgreSQL they can [Listen], too. Where what a lock guards is written to the same database,
// [Check] ties the lock to the transaction. README.md says what is guaranteed under which fault, and how a table of ShedLock's is used.
package sqllock
