package leases

import (
	"fmt"
	"slices"
	"time"

	"github.com/latchkey-go/latchkey/lock"
)

// Defaults of a Locker.
const (
	DefaultWatchdog = 30 * time.Second
	DefaultTimeout  = 3 * time.Second
	DefaultPause    = 50 * time.Millisecond
)

// longest is a lease that nobody will see the end of. Longer ones are cut to it, so that services can count with them.
const longest = 100 * 365 * 24 * time.Hour

// Option sets up a Locker.
type Option interface{ apply(*settings) }

type optionFunc func(*settings)

func (f optionFunc) apply(s *settings) { f(s) }

type settings struct {
	watchdog, timeout time.Duration
	pause, random     time.Duration
	kinds             []lock.Kind
	unsupported       string
	id                string
}

// Watchdog sets the lease of a lock that is renewed until released: how long the lock outlives a crashed holder. Renewal is tried
// from a third of it on. The default is DefaultWatchdog; less than 30ms is refused.
func Watchdog(d time.Duration) Option { return optionFunc(func(s *settings) { s.watchdog = d }) }

// Timeout bounds how long one question to the service may stay without an answer. The default is DefaultTimeout or, if that is less,
// the watchdog's. Less than 1ms is refused, and so is more than the watchdog's lease.
func Timeout(d time.Duration) Option { return optionFunc(func(s *settings) { s.timeout = d }) }

// Poll sets how long the first in line pauses before it asks again: at least pause, and at random up to random more, so that
// processes don't ask in step. The default of both is DefaultPause. It has no meaning for a [Queue].
func Poll(pause, random time.Duration) Option {
	return optionFunc(func(s *settings) { s.pause, s.random = pause, random })
}

// Kinds names the kinds that the Store serves, in place of lock.Exclusive alone. Others are refused with lock.ErrUnsupported and
// the reason, which says why the service can't serve them.
func Kinds(reason string, kinds ...lock.Kind) Option {
	return optionFunc(func(s *settings) { s.unsupported, s.kinds = reason, kinds })
}

// ID sets the beginning of each Entry's ID, such as the name of the host. The default is nothing.
func ID(prefix string) Option { return optionFunc(func(s *settings) { s.id = prefix }) }

func newSettings(opts []Option) (settings, error) {
	s := settings{watchdog: DefaultWatchdog, pause: DefaultPause, random: DefaultPause, kinds: []lock.Kind{lock.Exclusive}}
	for _, o := range opts {
		if o != nil {
			o.apply(&s)
		}
	}
	s.watchdog, s.timeout, s.pause, s.random = min(s.watchdog, longest), min(s.timeout, longest), min(s.pause, longest), min(s.random, longest)
	if s.timeout == 0 {
		s.timeout = min(DefaultTimeout, s.watchdog)
	}
	switch {
	case s.watchdog < 30*time.Millisecond:
		return s, fmt.Errorf("leases: a watchdog of %v is under 30ms", s.watchdog)
	case s.timeout < time.Millisecond:
		return s, fmt.Errorf("leases: a timeout of %v is under 1ms", s.timeout)
	case s.timeout > s.watchdog:
		return s, fmt.Errorf("leases: a timeout of %v is more than the watchdog's %v: the lock would be over before the answer",
			s.timeout, s.watchdog)
	case s.pause < time.Millisecond:
		return s, fmt.Errorf("leases: a pause of %v between two tries is under 1ms", s.pause)
	case s.random < 0:
		return s, fmt.Errorf("leases: a random pause of %v is negative", s.random)
	}
	return s, nil
}

// Serves returns nil if the Store serves k, and otherwise the error of an Acquire; see [lock.Locker].
func (s *settings) Serves(k lock.Kind) error {
	if slices.Contains(s.kinds, k) {
		return nil
	}
	if s.unsupported == "" {
		return fmt.Errorf("%w: %v", lock.ErrUnsupported, k)
	}
	return fmt.Errorf("%w: %v: %s", lock.ErrUnsupported, k, s.unsupported)
}
