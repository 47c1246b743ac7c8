package etcdlock

import (
	"fmt"
	"strings"
	"time"

	"github.com/latchkey-go/latchkey/lock/leases"
)

// Defaults of a Locker.
const (
	DefaultWatchdog = leases.DefaultWatchdog
	DefaultTimeout  = leases.DefaultTimeout
	DefaultPoll     = 10 * time.Second
)

// Option sets up a Locker.
type Option interface{ apply(*settings) }

type optionFunc func(*settings)

func (f optionFunc) apply(s *settings) { f(s) }

type settings struct {
	prefix                  string
	id                      string
	watchdog, timeout, poll time.Duration
}

// Prefix sets the beginning of the keys in etcd, such as "locks/". The lock "order:42" is then that of etcd's own
// concurrency.NewMutex(session, "locks/order:42"). The default is nothing.
func Prefix(p string) Option { return optionFunc(func(s *settings) { s.prefix = p }) }

// ID sets the beginning of the names of this process' entries, such as the name of the host, for people who look at
// etcd. The default is nothing. A slash is refused.
func ID(prefix string) Option { return optionFunc(func(s *settings) { s.id = prefix }) }

// Watchdog sets the lease of a lock that is renewed until released: how long the lock outlives a crashed holder, and how long a
// crashed waiter stays in line. Etcd counts leases in whole seconds and refuses to make them shorter than one and a half
// election timeouts, which is 2s by default. The default is DefaultWatchdog.
func Watchdog(d time.Duration) Option { return optionFunc(func(s *settings) { s.watchdog = d }) }

// Timeout bounds how long etcd may stay silent before the operation fails. It should be longer than an election, so
// that a change of the leader is no outage. Within it, a question without an answer is repeated after a third of it, in
// general to another member. The default is DefaultTimeout or, if that is less, the watchdog's.
func Timeout(d time.Duration) Option { return optionFunc(func(s *settings) { s.timeout = d }) }

// Poll sets how often a waiter looks at its line without a message about it, in case that its watch is stuck. It is
// also the longest pause between two renewals of its place. The default is DefaultPoll; less than 10ms is refused.
func Poll(d time.Duration) Option { return optionFunc(func(s *settings) { s.poll = d }) }

func newSettings(opts []Option) (settings, error) {
	s := settings{watchdog: DefaultWatchdog, poll: DefaultPoll}
	for _, o := range opts {
		if o != nil {
			o.apply(&s)
		}
	}
	if s.timeout == 0 {
		s.timeout = min(DefaultTimeout, s.watchdog)
	}
	switch {
	case strings.Contains(s.id, slash) || strings.HasPrefix(s.id, reader):
		return s, fmt.Errorf("etcdlock: the ID %q has a slash in it or begins with a tilde: these have a meaning in the names of entries", s.id)
	case s.poll < 10*time.Millisecond:
		return s, fmt.Errorf("etcdlock: a poll of %v is under 10ms", s.poll)
	}
	return s, nil
}
