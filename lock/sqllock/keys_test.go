package sqllock_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/latchkey-go/latchkey/keyexpr"
)

// keyOf makes a key of a value, as a request that was read from a database has it.
func keyOf[T any](of T) (string, error) {
	tmpl, err := keyexpr.Parse("k:#{row.V}", keyexpr.Roots{"row": keyexpr.TypeFor[struct{ V T }]()})
	if err != nil {
		return "", err
	}
	keys, err := tmpl.Expand(context.Background(), func(string) (any, error) { return struct{ V T }{of}, nil })
	if err != nil {
		return "", err
	}
	return keys[0], nil
}

func nullable[T any](null, set T, want string) func(t *testing.T) {
	return func(t *testing.T) {
		if key, err := keyOf(null); !errors.Is(err, keyexpr.ErrValue) {
			t.Errorf("%T of NULL makes %q, %v", null, key, err)
		}
		if key, err := keyOf(set); key != "k:"+want {
			t.Errorf("%T makes %q, %v; want %q", set, key, err, "k:"+want)
		}
	}
}

// TestNullsAreNoKeys has types of PostgreSQL's driver and of package uuid. NULL is no key, and what is set is its value.
func TestNullsAreNoKeys(t *testing.T) {
	t.Parallel()
	id := uuid.MustParse("6ba7b810-9dad-11d1-80b4-00c04fd430c8")
	for _, test := range []func(*testing.T){
		nullable(pgtype.Text{}, pgtype.Text{String: "ab", Valid: true}, "ab"),
		nullable(pgtype.Text{String: "stale"}, pgtype.Text{String: "ab", Valid: true}, "ab"),
		nullable(pgtype.Int2{}, pgtype.Int2{Int16: 2, Valid: true}, "2"),
		nullable(pgtype.Int4{}, pgtype.Int4{Int32: -4, Valid: true}, "-4"),
		nullable(pgtype.Int8{}, pgtype.Int8{Valid: true}, "0"),
		nullable(pgtype.Bool{}, pgtype.Bool{Valid: true}, "false"),
		nullable(pgtype.UUID{}, pgtype.UUID{Bytes: id, Valid: true}, id.String()),
		nullable(uuid.NullUUID{}, uuid.NullUUID{UUID: id, Valid: true}, id.String()),
		nullable(nil, &id, id.String()),
	} {
		test(t)
	}
}

// Times and numbers that are not whole have many spellings.
func TestManySpellingsAreNoKeys(t *testing.T) {
	t.Parallel()
	refused := func(err error) {
		t.Helper()
		if fault, ok := errors.AsType[*keyexpr.Error](err); !ok {
			t.Errorf("not refused at start: %v", fault)
		}
	}
	_, err := keyOf(pgtype.Timestamptz{})
	refused(err)
	_, err = keyOf(pgtype.Date{})
	refused(err)
	_, err = keyOf(pgtype.Float8{})
	refused(err)
}
