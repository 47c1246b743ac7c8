package mongolock

import (
	"fmt"
	"time"

	"github.com/latchkey-go/latchkey/lock/leases"
)

// Option sets up a Locker.
type Option interface{ apply(*settings) }

type optionFunc func(*settings)

func (f optionFunc) apply(s *settings) { f(s) }

type settings struct {
	core   []leases.Option
	slack  time.Duration
	hello  bool
	tokens bool
}

// Watchdog sets the lease of a lock that is renewed until released; see [leases.Watchdog].
func Watchdog(d time.Duration) Option { return core(leases.Watchdog(d)) }

// Timeout bounds how long one question to MongoDB may stay without an answer; see [leases.Timeout]. It bounds the selection of a
// server by the driver, too, so that the driver's own timeouts matter only if they are shorter.
func Timeout(d time.Duration) Option { return core(leases.Timeout(d)) }

// Poll sets how long the first in line pauses before it asks again; see [leases.Poll].
func Poll(pause, random time.Duration) Option { return core(leases.Poll(pause, random)) }

func core(o leases.Option) Option {
	return optionFunc(func(s *settings) { s.core = append(s.core, o) })
}

// Slack has each document say that its lock lasts d longer than the holder believes. It is for clocks that differ by up to d: that of
// a ShedLock in another process, which compares lockUntil with its own clock, that of the next primary, or those of several mongos. A
// holder that has crashed is in the way for d longer. The default is 0.
func Slack(d time.Duration) Option { return optionFunc(func(s *settings) { s.slack = d }) }

// Tokens serves the kind lock.Fenced: the documents have a field token, an integer that grows with each stay, of whatever kind. A
// document that has one is never deleted, as the next token would be 1 again; without Tokens a lock that is free has no document.
// All that use the collection for keys with tokens should have the option: a stay without it does not count.
func Tokens() Option { return optionFunc(func(s *settings) { s.tokens = true }) }

// HelloClock is for servers that don't take an aggregation pipeline as an update, or have no $$NOW: some that speak MongoDB's protocol and
// are none. Each question is preceded by a hello, whose localTime is the server's clock. It was read before the question is
// decided, so that leases begin early and never late; no client's clock is believed. It costs one more round trip a question.
func HelloClock() Option { return optionFunc(func(s *settings) { s.hello = true }) }

func newSettings(opts []Option) (settings, error) {
	var s settings
	for _, o := range opts {
		if o != nil {
			o.apply(&s)
		}
	}
	if s.slack < 0 || s.slack > maxSlack {
		return s, fmt.Errorf("mongolock: a slack of %v is not between 0 and %v", s.slack, maxSlack)
	}
	return s, nil
}

// maxSlack is far beyond what clocks can differ by where anything works.
const maxSlack = 24 * time.Hour
