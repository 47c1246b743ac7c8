package setnxlock

import (
	"errors"
	"fmt"
	"time"

	"github.com/latchkey-go/latchkey/lock/leases"
	"github.com/redis/go-redis/v9"
)

// Option sets up a Locker.
type Option interface{ apply(*settings) }

type optionFunc func(*settings)

func (f optionFunc) apply(s *settings) { f(s) }

type settings struct {
	leases  []leases.Option
	texts   texts
	keyText func(string) string // in place of the preset's
	faults  []error
}

// texts say how a lock is written. A function that is nil leaves things as they are.
type texts struct {
	preset  string                       // whose they are
	key     func(key string) string      // in Redis
	value   func(id string) string       // asked once for an entry
	channel func(redisKey string) string // where releases are announced
}

func (t *texts) keyOf(key string) string {
	if t.key == nil {
		return key
	}
	return t.key(key)
}

func (t *texts) channelOf(key string) string {
	if t.channel == nil {
		return ""
	}
	return t.channel(t.keyOf(key))
}

func (t *texts) valueOf(e *leases.Entry) string {
	if t.value == nil {
		return e.ID
	}
	if e.Data == nil {
		e.Data = t.value(e.ID)
	}
	return e.Data.(string)
}

// Watchdog sets the lease of a lock that is renewed until released: how long the lock outlives a crashed holder. Renewal is tried
// from a third of it on. The default is leases.DefaultWatchdog, 30s; less than 30ms is refused.
func Watchdog(d time.Duration) Option { return pass(leases.Watchdog(d)) }

// Timeout bounds how long one question to Redis may stay without an answer, repetitions included. The default is
// leases.DefaultTimeout, 3s, or the watchdog's lease if that is less. Less than 1ms is refused, and so is more than the watchdog's lease.
func Timeout(d time.Duration) Option { return pass(leases.Timeout(d)) }

// Poll sets how long the first waiter of this process for a lock pauses before it asks again: at least pause, and at random up to
// random more, so that processes don't ask in step. The default of both is leases.DefaultPause, 50ms.
func Poll(pause, random time.Duration) Option { return pass(leases.Poll(pause, random)) }

func pass(o leases.Option) Option {
	return optionFunc(func(s *settings) { s.leases = append(s.leases, o) })
}

// KeyText turns the key of a request into the one in Redis, in place of what a preset says, whatever the order of the options. Two keys
// with one text are one lock in Redis. So two calls of a process can't hold both, and none re-enters the other.
func KeyText(f func(key string) string) Option {
	return optionFunc(func(s *settings) {
		if f == nil {
			s.faults = append(s.faults, errors.New("setnxlock: KeyText of nil: want a function"))
		}
		s.keyText = f
	})
}

// preset takes over how another library writes its locks.
func preset(t texts) Option {
	return optionFunc(func(s *settings) {
		if s.texts.preset != "" {
			s.faults = append(s.faults, fmt.Errorf("setnxlock: both %s and %s: a Locker writes locks in one way; make two", s.texts.preset, t.preset))
		}
		s.texts = t
	})
}

// newSettings returns the settings of the options, or all mistakes in them.
func newSettings(rdb redis.UniversalClient, opts []Option) (settings, error) {
	var s settings
	for _, o := range opts {
		if o != nil {
			o.apply(&s)
		}
	}
	if s.keyText != nil {
		s.texts.key = s.keyText
	}
	return s, errors.Join(append([]error{checkClient(rdb)}, s.faults...)...)
}

// checkClient refuses clients that locks can't rely on.
func checkClient(rdb redis.UniversalClient) error {
	switch rdb := rdb.(type) {
	case *redis.Client:
		if rdb != nil {
			return nil
		}
	case *redis.ClusterClient:
		if rdb != nil {
			return nil
		}
	case nil:
	case *redis.Ring:
		return errors.New("setnxlock: a redis.Ring moves keys to other servers when one is down, so two holders could have one lock; use a single server, Sentinel or Redis Cluster")
	default:
		return fmt.Errorf("setnxlock: %T is not a client that this package knows: it may send a script elsewhere, or twice; give it the *redis.Client or *redis.ClusterClient inside", rdb)
	}
	return errors.New("setnxlock: no Redis client given")
}
