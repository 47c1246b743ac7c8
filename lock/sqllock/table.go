package sqllock

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/latchkey-go/latchkey/internal/clock"
	"github.com/latchkey-go/latchkey/lock"
)

// CheckTable returns nil if the table can serve, and otherwise an error that says what is wrong with it and what to type: ErrRefused,
// or that the database did not answer. It looks at the columns, at the unique key of the name, and at what the names of locks and the
// times depend on.
func (l *Locker) CheckTable(ctx context.Context) error {
	_, err := l.store.learn(ctx)
	return err
}

// CreateTable creates the table, if there is none of that name, and then is CheckTable. The statements are those in the folder schema,
// which may also be run by other means, such as Flyway: see [Locker.Schema].
func (l *Locker) CreateTable(ctx context.Context) error {
	s := l.store
	for _, text := range s.renamed() {
		err := s.create(ctx, text)
		if err != nil {
			return s.explain(err)
		}
	}
	return l.CheckTable(ctx)
}

// Schema returns the statements that CreateTable runs, with the names that the options give.
func (l *Locker) Schema() []string { return l.store.renamed() }

// create runs one statement of the schema. IF NOT EXISTS does not keep two processes from making the same table at the same moment.
func (s *store) create(ctx context.Context, text string) (err error) {
	for i := range collisions {
		_, err = s.exec(ctx, &statement{text: text}, nil)
		pause := min(firstPause<<i, longestPause)
		if err == nil || !s.collides(err) || !clock.Sleep(ctx, pause+rand.N(pause)) {
			break
		}
	}
	return err
}

// collisions bounds how often a statement of the schema is repeated: for some seconds in all.
const collisions = 32

// collides reports whether somebody else changes the schema at the same time.
func (s *store) collides(err error) bool {
	c := codeOf(err).text
	return c == "42P07" || c == "42710" || c == "XX000" || s.passes(err) // table or trigger exists; tuple concurrently updated
}

// Prune deletes the rows of locks that ended longer ago than age, at least a minute, and returns how many there were. Nothing deletes
// rows otherwise, neither ShedLock nor this package.
//
// Leave it alone where programs with ShedLock run: they remember the names that they have seen, and do not get a lock whose row has
// gone until they are started again. With Fencing it is an error, because a row that comes again would count from 1.
func (l *Locker) Prune(ctx context.Context, age time.Duration) (int64, error) {
	s := l.store
	switch {
	case s.fencing:
		return 0, errors.New("sqllock: Prune: the rows keep the fencing tokens, and must stay")
	case age < time.Minute:
		return 0, fmt.Errorf("sqllock: Prune(%v): want a minute at least", age)
	}
	n, err := s.repeat(ctx, s.prune, arguments{"age": age.Microseconds()})
	return n, s.explain(err)
}

// paragraphs are the statements of a schema, which has blank lines between them. Comments are left out.
func paragraphs(table, schema string) []string {
	schema = comment.ReplaceAllString(schema, "")
	var list []string
	for p := range strings.SplitSeq(strings.TrimSpace(schema), "\n\n") {
		p = strings.ReplaceAll(p, "shedlock", table)
		list = append(list, strings.TrimSuffix(strings.TrimSpace(p), ";"))
	}
	return list
}

var (
	comment = regexp.MustCompile(`(?m)^--.*\n`)
	column  = regexp.MustCompile(`\b(name|lock_until|locked_at|locked_by)\b`)
)

// renamed is the schema with the names of the columns that the options give.
func (s *store) renamed() []string {
	names := map[string]string{"name": s.columns.name, "lock_until": s.columns.until, "locked_at": s.columns.at, "locked_by": s.columns.by}
	var list []string
	for _, text := range s.schema {
		list = append(list, column.ReplaceAllStringFunc(text, func(name string) string { return names[name] }))
	}
	return list
}

// facts are the properties of a table that can serve.
type facts struct {
	unit    time.Duration // of lock_until, if that is less exact than the database's clock
	charset string        // of the name, if not everything can be written in it
	last    time.Time     // the end of time in the column; zero if it is far away
}

// bound cuts a lease at the end of time.
func (f *facts) bound(d time.Duration) time.Duration {
	if f.last.IsZero() {
		return d
	}
	return max(min(d, time.Until(f.last)), time.Millisecond)
}

// ready returns the facts about the table. The first time, and until the table is right, it asks.
func (s *store) ready(ctx context.Context) (*facts, error) {
	if f := s.facts.Load(); f != nil {
		return f, nil
	}
	return s.learn(ctx)
}

// learn reads the properties of the table. If that fails, the earlier ones stay: there may be holds.
func (s *store) learn(ctx context.Context) (*facts, error) {
	var f *facts
	_, err := s.do(ctx, func(c *sql.Conn) (err error) {
		f, err = s.inspect(ctx, c)
		return err
	})
	if err != nil {
		return nil, s.explain(err)
	}
	s.facts.Store(f)
	return f, nil
}

func (s *store) inspect(ctx context.Context, c *sql.Conn) (*facts, error) {
	all, err := s.found(ctx, c)
	if err == nil {
		err = s.judge(all)
	}
	if err != nil {
		return nil, err
	}
	name, until, by := all[strings.ToLower(s.columns.name)], all[strings.ToLower(s.columns.until)], all[strings.ToLower(s.columns.by)]
	switch s.on {
	case PostgreSQL:
		return s.inspectPostgres(ctx, c, name, until)
	case MySQL:
		return s.inspectMySQL(ctx, c, name, until, by)
	}
	return s.inspectSQLite(name, until)
}

// found is a column of the table.
type found struct {
	kind     string // of data, in the words of the database
	length   int    // in characters; 0 for no bound
	digits   int    // of a second's fraction
	unique   bool   // alone in a unique key
	charset  string
	equal    string // a collation that holds different texts for equal
	optional bool   // an INSERT can leave it out
}

// unfit is a refusal that says what to do.
func (s *store) unfit(format string, args ...any) error {
	return fmt.Errorf("%w: sqllock: table %s: %s", lock.ErrRefused, s.table, fmt.Sprintf(format, args...))
}

// judge returns the mistakes in columns that any database can have.
func (s *store) judge(all map[string]found) error {
	c := s.columns
	if len(all) == 0 {
		return s.unfit("there is none; call CreateTable, or run what Schema returns")
	}
	wanted := []string{c.name, c.until, c.at, c.by}
	if s.fencing {
		wanted = append(wanted, "token")
	}
	for _, name := range wanted {
		if _, ok := all[strings.ToLower(name)]; !ok && name == "token" {
			return s.unfit("it has no column token: ALTER TABLE %s ADD COLUMN token BIGINT NOT NULL DEFAULT 0", s.table)
		} else if !ok {
			return s.unfit("it has no column %s, so it is not ShedLock's; name another table with the option Table", name)
		}
	}
	for name, f := range all {
		if !f.optional && !containsFold(wanted, name) {
			return s.unfit("its column %s must be filled in and has no default, so no lock can be entered", name)
		}
	}
	return s.judgeNames(all[strings.ToLower(c.name)], all[strings.ToLower(c.by)])
}

func (s *store) judgeNames(name, by found) error {
	c := s.columns
	switch {
	case !name.unique:
		return s.unfit("nothing keeps two rows with one %s apart: ALTER TABLE %s ADD PRIMARY KEY (%s)", c.name, s.table, c.name)
	case name.length > 0 && name.length < s.nameLength:
		return s.unfit("its column %s has %d characters, and must have %d", c.name, name.length, s.nameLength)
	case by.length > 0 && by.length < len(s.holder)+longestID:
		return s.unfit("its column %s has %d characters, and must have %d; give a shorter Holder, or a wider column", c.by, by.length,
			len(s.holder)+longestID)
	case name.equal != "" && !s.caseInsensitive:
		return s.unfit("its column %s has the collation %s, for which different names may be equal, such as A and a: give it a binary "+
			"one, or accept that with the option CaseInsensitive%s", c.name, name.equal, s.binary())
	}
	return nil
}

// longestID is a colon, an ID of package leases, and what a release adds.
const longestID = 1 + 26 + len(released)

// binary is the statement that tells names apart.
func (s *store) binary() string {
	if s.on != MySQL {
		return ""
	}
	return fmt.Sprintf(" (ALTER TABLE %s MODIFY %s VARCHAR(%d) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL)", s.table,
		s.columns.name, s.nameLength)
}

func containsFold(list []string, name string) bool {
	return slices.ContainsFunc(list, func(s string) bool { return strings.EqualFold(s, name) })
}

// name returns the name of a key, if the table can have it.
func (s *store) name(f *facts, key string) (string, error) {
	name := nameOf(key, s.nameLength)
	most := rune(0x7f)
	switch f.charset {
	case "":
		return name, nil
	case "utf8mb3", "utf8":
		most = 0xffff
	}
	if strings.ContainsFunc(name, func(r rune) bool { return r > most }) {
		return "", s.unfit("the character set %s of its column %s can't hold this name: ALTER TABLE %s MODIFY %s VARCHAR(%d) CHARACTER SET "+
			"utf8mb4 COLLATE utf8mb4_bin NOT NULL", f.charset, s.columns.name, s.table, s.columns.name, s.nameLength)
	}
	return name, nil
}
