package sqllock_test

import (
	"errors"
	"testing"
	"time"

	"crypto/rand"

	_ "github.com/lib/pq"

	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/leases"
	"github.com/latchkey-go/latchkey/lock/sqllock"
)

func entry() *leases.Entry { return &leases.Entry{Key: "job", ID: "test:" + rand.Text()} }

// Whatever a client repeats because an answer was lost finds its own work.
func TestRepeatedQuestionsDoNoHarm(t *testing.T) {
	each(t, func(t *testing.T, d database) {
		table := d.table(t)
		s, e := table.locker(t, sqllock.Fencing()).Store(), entry()
		for i := range 3 {
			g, err := s.Take(t.Context(), e, time.Minute)
			if err != nil || g.Token != 1 || g.Lease > time.Minute || g.Lease < 50*time.Second {
				t.Fatalf("Take %d = %+v, %v", i, g, err)
			}
		}
		for range 3 {
			if d, err := s.Extend(t.Context(), e, time.Minute); err != nil || d > time.Minute || d < 50*time.Second {
				t.Fatalf("Extend = %v, %v", d, err)
			}
		}
		if err := s.Free(t.Context(), e, 0); err != nil {
			t.Fatal(err)
		}
		if err := s.Free(t.Context(), e, 0); !errors.Is(err, lock.ErrNotHeld) {
			t.Errorf("the second Free = %v, want ErrNotHeld", err)
		}
		next, err := s.Take(t.Context(), entry(), time.Minute)
		if err != nil || next.Token != 2 {
			t.Errorf("the next stay = %+v, %v, want token 2", next, err)
		}
	})
}

// A statement may arrive when the client has long given it up and released the lock.
func TestLateStatementsAfterTheReleaseDoNothing(t *testing.T) {
	each(t, func(t *testing.T, d database) {
		table := d.table(t)
		s, e := table.locker(t).Store(), entry()
		if _, err := s.Take(t.Context(), e, time.Minute); err != nil {
			t.Fatal(err)
		}
		if err := s.Free(t.Context(), e, 0); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Take(t.Context(), e, time.Minute); !errors.Is(err, lock.ErrBusy) {
			t.Errorf("a late Take = %v, want ErrBusy", err)
		}
		if _, err := s.Extend(t.Context(), e, time.Minute); !errors.Is(err, lock.ErrNotHeld) {
			t.Errorf("a late Extend = %v, want ErrNotHeld", err)
		}
		if n := table.held(t); n != 0 {
			t.Errorf("%d rows are held", n)
		}
	})
}

// What others have, nobody renews or frees; and what is over, nobody renews.
func TestOnlyTheHolderExtendsAndFrees(t *testing.T) {
	each(t, func(t *testing.T, d database) {
		s := d.table(t).locker(t).Store()
		mine, other := entry(), entry()
		if _, err := s.Take(t.Context(), mine, 100*time.Millisecond); err != nil {
			t.Fatal(err)
		}
		for {
			if _, err := s.Take(t.Context(), other, time.Minute); err == nil {
				break
			} else if !errors.Is(err, lock.ErrBusy) {
				t.Fatal(err)
			}
		}
		if _, err := s.Extend(t.Context(), mine, time.Hour); !errors.Is(err, lock.ErrNotHeld) {
			t.Errorf("Extend = %v, want ErrNotHeld", err)
		}
		if err := s.Free(t.Context(), mine, 0); !errors.Is(err, lock.ErrNotHeld) {
			t.Errorf("Free = %v, want ErrNotHeld", err)
		}
		err := s.(leases.Peeker).Peek(t.Context(), entry())
		if b, ok := errors.AsType[*lock.BusyError](err); !ok || b.Remaining > time.Minute || b.Remaining < 30*time.Second {
			t.Errorf("Peek = %v, want busy for nearly a minute", err)
		}
		last := entry()
		if err := s.Free(t.Context(), other, 0); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Take(t.Context(), last, time.Millisecond); err != nil {
			t.Fatal(err)
		}
		<-time.After(20 * time.Millisecond)
		if _, err := s.Extend(t.Context(), last, time.Hour); !errors.Is(err, lock.ErrNotHeld) {
			t.Errorf("Extend after the end = %v, want ErrNotHeld", err)
		}
	})
}

// Drivers are no dependency of the package, so it reads their errors by shape.
func TestErrorsOfTheDrivers(t *testing.T) {
	maria, lite := onMariaDB.table(t), onSQLite.table(t)
	post := onPostgres.table(t)
	pq := &table{db: open(t, "postgres", post.source)}
	for _, tt := range []struct {
		table  *table
		query  string
		text   string
		number int64
	}{
		{post, "SELECT * FROM nothing", "42P01", 0},
		{pq, "SELECT * FROM nothing", "42P01", 0},
		{pq, "SELECT 1/0", "22012", 0},
		{maria, "SELECT * FROM nothing", "", 1146},
		{maria, "SELEKT", "", 1064},
		{lite, "SELECT * FROM nothing", "", 1},
		{lite, "INSERT INTO " + lite.name + " VALUES ('a', 0, 0, '', 0), ('a', 0, 0, '', 0)", "", 1555},
	} {
		_, err := tt.table.db.ExecContext(t.Context(), tt.query)
		if text, number := sqllock.CodeOf(errors.Join(errors.New("other"), err)); err == nil || text != tt.text || number != tt.number {
			t.Errorf("%q: %v: code %q, %d, want %q, %d", tt.query, err, text, number, tt.text, tt.number)
		}
	}
	if text, number := sqllock.CodeOf(errors.New("other")); text != "" || number != 0 {
		t.Errorf("another error has the code %q, %d", text, number)
	}
}

// Of two questions the one that asks for less may arrive last.
func TestNoCopyOfAQuestionShortensALease(t *testing.T) {
	each(t, func(t *testing.T, d database) {
		s, e := d.table(t).locker(t).Store(), entry()
		if _, err := s.Take(t.Context(), e, time.Hour); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Take(t.Context(), e, time.Second); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Extend(t.Context(), e, time.Second); err != nil {
			t.Fatal(err)
		}
		lasts := func(least, most time.Duration) {
			t.Helper()
			err := s.(leases.Peeker).Peek(t.Context(), entry())
			if b, ok := errors.AsType[*lock.BusyError](err); !ok || b.Remaining < least || b.Remaining > most {
				t.Errorf("Peek = %+v, want busy for %v to %v", err, least, most)
			}
		}
		lasts(50*time.Minute, time.Hour)
		for range 2 { // the second is a repetition
			if err := s.Free(t.Context(), e, time.Minute); err != nil {
				t.Fatal(err)
			}
		}
		lasts(30*time.Second, time.Minute)
		if _, err := s.Extend(t.Context(), e, time.Hour); !errors.Is(err, lock.ErrNotHeld) {
			t.Errorf("Extend after the end of the stay = %v, want ErrNotHeld", err)
		}
		if err := s.Free(t.Context(), e, 0); err != nil {
			t.Errorf("Free of what was kept = %v", err)
		}
		if err := s.(leases.Peeker).Peek(t.Context(), entry()); err != nil {
			t.Errorf("Peek after all = %v", err)
		}
	})
}
