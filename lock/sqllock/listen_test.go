package sqllock_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/sqllock"
	"github.com/latchkey-go/latchkey/lock/sqllock/pgxlisten"
)

// rarely is so seldom that a test which depends on polling fails.
var rarely = sqllock.Poll(time.Hour, 0)

func TestMessagesWakeWaiters(t *testing.T) {
	table := onPostgres.table(t)
	l := table.locker(t, sqllock.Listen(pgxlisten.From(table.db)), rarely)
	if err := l.CreateTable(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"job", "ключ", strings.Repeat("long", 100)} {
		h := take(t, table.locker(t), lock.Request{Key: key}) // knows nothing of messages: the trigger does
		got := make(chan error, 1)
		go func() {
			h, err := l.Acquire(context.Background(), lock.Request{Key: key, Wait: 20 * time.Second})
			if err == nil {
				err = h.Release(context.Background())
			}
			got <- err
		}()
		select {
		case err := <-got:
			t.Fatalf("did not wait: %v", err)
		case <-time.After(200 * time.Millisecond):
		}
		release(t, h)
		if err := <-got; err != nil {
			t.Error(err)
		}
	}
}

// The longest name for whose table there is a channel.
func TestMessagesOfALongTable(t *testing.T) {
	db := open(t, onPostgres.driver, onPostgres.dsn(t))
	l := newLocker(t, db, onPostgres.on, sqllock.Table(strings.Repeat("t", 54)), sqllock.Listen(pgxlisten.From(db)), rarely)
	if err := l.CreateTable(t.Context()); err != nil {
		t.Fatal(err)
	}
	h := take(t, l, lock.Request{Key: "job"})
	time.AfterFunc(100*time.Millisecond, func() { _ = h.Release(context.Background()) })
	release(t, take(t, newLocker(t, db, onPostgres.on, sqllock.Table(strings.Repeat("t", 54)), sqllock.Listen(pgxlisten.From(db)), rarely),
		lock.Request{Key: "job", Wait: 20 * time.Second}))
}

// While nobody waits, there is no connection that listens.
func TestTheConnectionThatListensComesAndGoes(t *testing.T) {
	table := onPostgres.table(t)
	listening, ended := make(chan struct{}, 9), make(chan struct{}, 9)
	from := pgxlisten.From(table.db)
	l := table.locker(t, rarely, sqllock.Listen(func(ctx context.Context, channel string, up func(), heard func(string)) error {
		defer func() { ended <- struct{}{} }()
		if want := "latchkey_" + table.name; channel != want {
			t.Errorf("listens to %s, want %s", channel, want)
		}
		return from(ctx, channel, func() { listening <- struct{}{}; up() }, heard)
	}))
	if err := l.CreateTable(t.Context()); err != nil {
		t.Fatal(err)
	}
	h := take(t, l, lock.Request{Key: "job"})
	waits := make(chan error, 1)
	wait := func(d time.Duration) {
		_, err := table.locker(t, rarely).Acquire(context.Background(), lock.Request{Key: "job"})
		if !errors.Is(err, lock.ErrBusy) {
			t.Error(err)
		}
		_, err = l.Acquire(lock.NewOwner(context.Background()), lock.Request{Key: "job", Wait: d})
		waits <- err
	}
	go wait(time.Second)
	if err := <-waits; !errors.Is(err, lock.ErrBusy) { // the process waits for itself, and asks nobody
		t.Error(err)
	}
	other := table.locker(t)
	release(t, h)
	h = take(t, other, lock.Request{Key: "job"})
	go wait(time.Second)
	<-listening
	if err := <-waits; !errors.Is(err, lock.ErrBusy) {
		t.Error(err)
	}
	release(t, h)
	select {
	case <-ended:
	case <-time.After(sqllock.Linger + 20*time.Second):
		t.Error("it still listens")
	}
}

// A message that was lost with its connection costs nothing but the time until there is another one.
func TestABrokenConnectionIsReplaced(t *testing.T) {
	table := onPostgres.table(t)
	l := table.locker(t, sqllock.Listen(pgxlisten.From(table.db)), rarely)
	if err := l.CreateTable(t.Context()); err != nil {
		t.Fatal(err)
	}
	h := take(t, table.locker(t), lock.Request{Key: "job"})
	got := make(chan error, 1)
	go func() {
		h, err := l.Acquire(context.Background(), lock.Request{Key: "job", Wait: 20 * time.Second})
		if err == nil {
			err = h.Release(context.Background())
		}
		got <- err
	}()
	const listeners = "SELECT pid FROM pg_stat_activity WHERE query = 'LISTEN \"latchkey_%s\"'"
	var pid int
	for pid == 0 {
		err := table.db.QueryRowContext(t.Context(), strings.ReplaceAll(listeners, "%s", table.name)).Scan(&pid)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			t.Fatal(err)
		}
	}
	table.exec(t, "SELECT pg_terminate_backend($1)", pid)
	release(t, h)
	if err := <-got; err != nil {
		t.Error(err)
	}
}

func TestOnlyConnectionsOfPgxListen(t *testing.T) {
	db := open(t, "postgres", postgresDSN(shared(t, "postgres").Addr))
	err := pgxlisten.From(db)(t.Context(), "x", func() { t.Error("listens") }, func(string) {})
	if err == nil || !strings.Contains(err.Error(), "no connection of pgx") {
		t.Errorf("lib/pq: %v", err)
	}
}

// A program that starts calls CreateTable again. That must not wait for those who only read the table, such as a backup: the renewals
// of all others would stand in line behind it.
func TestCreateTableDisturbsNobodyOnceTheTriggerIsThere(t *testing.T) {
	table := onPostgres.table(t, sqllock.Listen(deaf))
	reader, err := table.db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = reader.Rollback() }()
	if _, err := reader.ExecContext(t.Context(), "SELECT * FROM "+table.name); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if err := table.locker(t, sqllock.Listen(deaf)).CreateTable(ctx); err != nil {
		t.Errorf("CreateTable() while somebody reads: %v", err)
	}
}
