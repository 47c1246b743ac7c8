package sqllock

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/leases"
)

// Defaults of a Locker. Those of the table are ShedLock's.
const (
	DefaultTable      = "shedlock"
	DefaultNameLength = 64
	DefaultWatchdog   = leases.DefaultWatchdog
	DefaultTimeout    = leases.DefaultTimeout
)

// Option sets up a Locker.
type Option interface{ apply(*settings) }

type optionFunc func(*settings)

func (f optionFunc) apply(s *settings) { f(s) }

type settings struct {
	table           string
	columns         columns
	holder          string
	nameLength      int
	fencing         bool
	caseInsensitive bool
	listen          Listener
	leases          []leases.Option
}

// columns are the names of ShedLock's columns.
type columns struct{ name, until, at, by string }

// Table names the table, with or without its schema. The default is DefaultTable.
func Table(name string) Option { return optionFunc(func(s *settings) { s.table = name }) }

// Columns names the four columns, where ShedLock was given other names for name, lock_until, locked_at and locked_by.
func Columns(name, lockUntil, lockedAt, lockedBy string) Option {
	return optionFunc(func(s *settings) { s.columns = columns{name, lockUntil, lockedAt, lockedBy} })
}

// Holder sets the beginning of locked_by, for people. The default is the name of the host, which ShedLock writes, too.
// A colon and an ID that is never used again follow it.
func Holder(name string) Option { return optionFunc(func(s *settings) { s.holder = name }) }

// Fencing makes the kind Fenced available, with tokens from the column token. Each program that takes the lock must have this option, and
// none of ShedLock counts up: between two tokens there can be a holder in Java, who has none.
func Fencing() Option { return optionFunc(func(s *settings) { s.fencing = true }) }

// NameLength sets the length in characters up to which a key is a name in the table as it is. A longer one gets a digest for its
// tail. The default is DefaultNameLength, which is the width of ShedLock's column. All programs that share a table must have the same.
func NameLength(n int) Option { return optionFunc(func(s *settings) { s.nameLength = n }) }

// CaseInsensitive accepts a table of MySQL or MariaDB whose collation holds some different keys for equal, such as A and a. Such keys
// are then one lock: they exclude each other, and a call that holds one waits in vain for the other.
func CaseInsensitive() Option { return optionFunc(func(s *settings) { s.caseInsensitive = true }) }

// Listen wakes waiters by messages about releases, in place of polling alone. It is for PostgreSQL, and needs the
// trigger of schema/postgres_notify.sql, which CreateTable makes if this option is there. The trigger also fires for
// ShedLock's releases.
//
// A message costs PostgreSQL a lock over the whole database while the transaction commits, so a table with thousands of releases a second
// does better without. Polling goes on beside it: give [Poll] more than its default.
func Listen(l Listener) Option { return optionFunc(func(s *settings) { s.listen = l }) }

// Watchdog sets the lease of a lock that is renewed until released; see [leases.Watchdog].
func Watchdog(d time.Duration) Option { return passed(leases.Watchdog(d)) }

// Timeout bounds how long one question to the database may stay without an answer; see [leases.Timeout].
func Timeout(d time.Duration) Option { return passed(leases.Timeout(d)) }

// Poll sets how long the first waiter of a process pauses before it asks again; see [leases.Poll].
func Poll(pause, random time.Duration) Option { return passed(leases.Poll(pause, random)) }

func passed(o leases.Option) Option {
	return optionFunc(func(s *settings) { s.leases = append(s.leases, o) })
}

var (
	identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,62}$`)
	tableName  = regexp.MustCompile(`^([A-Za-z_][A-Za-z0-9_]{0,62}\.)?[A-Za-z_][A-Za-z0-9_]{0,62}$`)
)

func newSettings(db Database, opts []Option) (settings, error) {
	s := settings{table: DefaultTable, nameLength: DefaultNameLength, holder: hostname(),
		columns: columns{"name", "lock_until", "locked_at", "locked_by"}}
	for _, o := range opts {
		if o != nil {
			o.apply(&s)
		}
	}
	if !tableName.MatchString(s.table) {
		return s, fmt.Errorf("sqllock: table %q: want a name of letters, digits and _, or schema.name", s.table)
	}
	var known []string
	if s.fencing {
		known = append(known, "token")
	}
	for _, c := range []string{s.columns.name, s.columns.until, s.columns.at, s.columns.by} {
		switch {
		case !identifier.MatchString(c):
			return s, fmt.Errorf("sqllock: column %q: want a name of letters, digits and _", c)
		case containsFold(known, c): // a statement would write both values, and some databases keep the last
			return s, fmt.Errorf("sqllock: the column %s twice: want a column for each", c)
		}
		known = append(known, c)
	}
	switch {
	case s.nameLength < DefaultNameLength:
		return s, fmt.Errorf("sqllock: NameLength(%d): want at least %d", s.nameLength, DefaultNameLength)
	case len(s.holder) > longestHolder || strings.ContainsFunc(s.holder, notPrintable):
		return s, fmt.Errorf("sqllock: Holder: want at most %d printable ASCII characters", longestHolder)
	case s.listen != nil && db != PostgreSQL:
		return s, errors.New("sqllock: Listen is for PostgreSQL: without it, waiters poll")
	case s.listen != nil && len(s.channel()) > longestChannel:
		return s, fmt.Errorf("sqllock: Listen: the name of the table %q has more than %d characters, so PostgreSQL has no channel for it, and each "+
			"release would fail: take a shorter name", s.table, longestChannel-len(channelPrefix))
	}
	return s, nil
}

// longestChannel is the length of PostgreSQL's names. The trigger on the table fails for a longer one, and the release with it.
const longestChannel = 63

// longestHolder leaves room in ShedLock's locked_by for an ID and for what a release adds.
const longestHolder = 128

func notPrintable(r rune) bool { return r < ' ' || r > '~' }

func hostname() string {
	name, err := os.Hostname()
	if err != nil || strings.ContainsFunc(name, notPrintable) {
		return "unknown"
	}
	return name[:min(len(name), longestHolder)]
}

// leaseOptions are the options for package leases.
func (s *settings) leaseOptions() []leases.Option {
	kinds := []lock.Kind{lock.Exclusive, lock.Spin}
	reason := "a row has one holder, and no line in which others wait"
	if s.fencing {
		kinds = append(kinds, lock.Fenced)
	} else {
		reason += "; for fencing tokens give the option Fencing"
	}
	return append([]leases.Option{leases.ID(s.holder + ":"), leases.Kinds(reason, kinds...)}, s.leases...)
}
