package redisson

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/latchkey-go/latchkey/redisson/internal/transport"
	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel/metric"
)

// Defaults of a Client. Those of the watchdog and of spin locks are Redisson's.
const (
	DefaultWatchdogTimeout = 30 * time.Second
	// DefaultTimeout is the default of Timeout, unless the watchdog's timeout is shorter.
	DefaultTimeout = 3 * time.Second
	// DefaultFairLockWaitTimeout is how long the queue of a fair lock waits for a waiter that has died. Redisson's default is
	// 5 minutes, but its waiters do not come again before that.
	DefaultFairLockWaitTimeout = 30 * time.Second
	// DefaultSpinMin and DefaultSpinMax are the first and the longest pause of a waiter for a spin lock.
	DefaultSpinMin = time.Millisecond
	DefaultSpinMax = 128 * time.Millisecond
)

// leastTokenTTL is longer than processes and servers are usually out of order for.
const leastTokenTTL = time.Hour

// Option sets up a Client.
type Option interface{ apply(*settings) }

type settings struct {
	watchdogTimeout time.Duration
	timeout         time.Duration
	timeoutGiven    bool
	answers         time.Duration // as answerInterval, but in tests
	mapName         func(string) string
	workers         int  // as many as there can be connections
	bounded         bool // go-redis heeds deadlines
	mapped          bool // it has a map of masters
	fairWait        time.Duration
	tokenTTL        time.Duration
	spin            backoff
	sharded         ShardedMode
	sync            transport.Replicas
	mostOfKey       int // waiters
	mostWaiters     int
	meters          metric.MeterProvider
	name            string
	named           bool
	describes       bool
	credentials     func(context.Context) (user, password string, err error) // of Open
}

// settingsOf returns the defaults with the options applied.
func settingsOf(opts []Option) settings {
	s := settings{
		watchdogTimeout: DefaultWatchdogTimeout,
		answers:         answerInterval,
		mapName:         func(name string) string { return name },
		fairWait:        DefaultFairLockWaitTimeout,
		spin:            backoff{DefaultSpinMin, DefaultSpinMax},
		sync:            transport.Replicas{Count: transport.Online},
	}
	for _, o := range opts {
		o.apply(&s)
	}
	return s
}

type optionFunc func(*settings)

func (f optionFunc) apply(s *settings) { f(s) }

// WatchdogTimeout is the lease of a lock that is renewed until released, Redisson's lockWatchdogTimeout; renewal is tried
// from a third of it on. It is how long a lock outlives a crashed holder. The default is DefaultWatchdogTimeout; less
// than 30ms is refused.
func WatchdogTimeout(d time.Duration) Option {
	return optionFunc(func(s *settings) { s.watchdogTimeout = d })
}

// Timeout bounds how long one question to Redis may stay without an answer, repetitions included, before the operation
// fails, whatever the timeouts of the go-redis client are. The default is DefaultTimeout or, if that is less, the watchdog's
// timeout. Less than 1ms is refused, and so is more than the watchdog's timeout: an answer would come when the lock is over.
func Timeout(d time.Duration) Option {
	return optionFunc(func(s *settings) { s.timeout, s.timeoutGiven = d, true })
}

// NameMapper turns the name of a lock into its key in Redis, as Redisson's NameMapper does; all names that are derived
// from it use the result. The default leaves names as they are.
func NameMapper(f func(name string) string) Option {
	return optionFunc(func(s *settings) { s.mapName = f })
}

// FairLockWaitTimeout is how long the queue of a fair lock waits for a waiter before it counts as dead, Redisson's setting of
// that name; less for a waiter that waits less. A waiter of this package that lives comes again in time and keeps its place. A
// dead one shuts the lock, also a free one, until its deadline: that is this time after the deadline of the waiter ahead of it.
// So the times of dead waiters add up. The default is
// DefaultFairLockWaitTimeout; less than a second is refused.
func FairLockWaitTimeout(d time.Duration) Option {
	return optionFunc(func(s *settings) { s.fairWait = d })
}

// FencingTokenTTL is how long the counter of a [FencedLock] is kept after the lease of its last hold: an acquire or renewal gives
// it that long on top of the lease. Then the tokens begin at 1 again, so it must be longer than any resource remembers a token
// and any stopped process may sleep. The default, 0, keeps the counters for ever, as Redisson does; less than an hour is refused.
// Give all programs that share a lock the same: one without the option counts up, but does not keep the counter alive. So does
// Redisson, which neither sets nor removes a time to live of the counter: locks that Java takes, too, are not for this option.
func FencingTokenTTL(d time.Duration) Option {
	return optionFunc(func(s *settings) { s.tokenTTL = d })
}

// SpinBackoff sets how long a waiter for a spin lock pauses between two tries: at first between first and twice as long, at
// random, then twice that each time, up to longest. The defaults are DefaultSpinMin and DefaultSpinMax.
func SpinBackoff(first, longest time.Duration) Option {
	return optionFunc(func(s *settings) { s.spin = backoff{first, longest} })
}

// ShardedMode is the kind of channels on which releases are announced in a Redis Cluster, Redisson's
// shardedSubscriptionMode. Peers must agree: a client that listens to the other kind gets the lock only when its lease
// is over or a third of the watchdog's timeout has passed. Redisson before 3.22.0 knows only ShardedOff.
type ShardedMode int

// The modes of ShardedPubSub.
const (
	ShardedAuto ShardedMode = iota // sharded if the cluster answers PUBSUB SHARDNUMSUB, as Redis 7 does; the default
	ShardedOn                      // SPUBLISH and SSUBSCRIBE; Redis 7 is needed
	ShardedOff                     // PUBLISH and SUBSCRIBE, which a cluster passes on to all of its nodes
)

// ShardedPubSub chooses the kind of channels in a Redis Cluster. The default is ShardedAuto, as in Redisson; set it to
// the mode of the peers in Java if they differ from that. A *redis.Client is refused with ShardedOn. A
// *redis.ClusterClient whose servers say that they are no cluster, such as those of Sentinel, has classic channels in
// any mode.
func ShardedPubSub(m ShardedMode) Option {
	return optionFunc(func(s *settings) { s.sharded = m })
}

// Credentials has [Open] ask for the user and password of each new connection to Redis, in place of those in the URL: for passwords that
// are rolled, and tokens. New ignores it: there they are go-redis' CredentialsProviderContext.
func Credentials(f func(ctx context.Context) (user, password string, err error)) Option {
	return optionFunc(func(s *settings) { s.credentials = f })
}

// SyncReplicas has each Acquire confirmed by n replicas of the lock's master with WAIT, so that a failover can't lose the
// lock as long as one of these replicas becomes the master. If they have not confirmed it after timeout, which must be less
// than that of the client, the lock is given back and the Acquire fails with ErrNotReplicated. Releases, renewals and a lock that passes on
// within the process are not confirmed.
//
// The default is Redisson's checkLockSyncedSlaves: one replica within a second, or a third of [Timeout] if that is less, of a master that has
// any online, as it says itself to ROLE or INFO, once a second. Without a replica online, or without the right to ask, nothing confirms
// locks; a line in the log tells of the latter. SyncReplicas(0, 0) turns that off.
func SyncReplicas(n int, timeout time.Duration) Option {
	return optionFunc(func(s *settings) { s.sync = transport.Replicas{Count: n, Timeout: timeout} })
}

// MaxWaiters bounds how many calls of this client wait: ofKey at a time for one key, and inAll for all keys together. 0, the default
// of both, sets no bound. A call that has to wait beyond it fails at once with an error that matches [ErrTooManyWaiters] and
// lock.ErrBusy, also if it would wait for ever. It holds for whatever waits: locks of all kinds, synchronizers, and for a RedLock at
// the first of its clients in the order of their IDs. One that can have at once what it wants is no waiter.
//
// A waiter costs about 6 KB and what its caller keeps for it, and nothing in Redis except for a fair lock. Set a bound where strangers
// can make as many calls as they like, so that one hot key can't take up the process.
func MaxWaiters(ofKey, inAll int) Option {
	return optionFunc(func(s *settings) { s.mostOfKey, s.mostWaiters = ofKey, inAll })
}

// check also fills in settings that depend on others.
func (s *settings) check() error {
	if !s.timeoutGiven {
		s.timeout = min(DefaultTimeout, s.watchdogTimeout)
	}
	switch {
	case s.watchdogTimeout < 30*time.Millisecond:
		return fmt.Errorf("redisson: watchdog timeout %v is under 30ms", s.watchdogTimeout)
	case s.timeout < time.Millisecond:
		return fmt.Errorf("redisson: timeout %v is under 1ms", s.timeout)
	case s.timeout > s.watchdogTimeout:
		return fmt.Errorf("redisson: timeout %v is over the watchdog's, %v: an answer could come when the lock is over", s.timeout, s.watchdogTimeout)
	case s.fairWait < time.Second:
		return fmt.Errorf("redisson: fair lock wait timeout %v is under 1s", s.fairWait)
	case s.tokenTTL != 0 && s.tokenTTL < leastTokenTTL:
		return fmt.Errorf("redisson: fencing token TTL %v is under %v: want more, or 0 for ever", s.tokenTTL, leastTokenTTL)
	case s.spin.first < time.Microsecond || s.spin.longest < s.spin.first:
		return fmt.Errorf("redisson: spin back-off from %v to %v must grow, from 1µs at least", s.spin.first, s.spin.longest)
	case s.mostOfKey < 0 || s.mostWaiters < 0:
		return fmt.Errorf("redisson: MaxWaiters(%d, %d): want positive numbers, or 0 for no bound", s.mostOfKey, s.mostWaiters)
	case s.mapName == nil:
		return errors.New("redisson: name mapper is nil")
	case s.sharded == ShardedOn && !s.mapped:
		return errors.New("redisson: sharded channels are there in a Redis Cluster only")
	}
	return cmp.Or(s.checkName(), s.checkReplicas())
}

// checkServers refuses clients that locks can't rely on. It also notes their abilities.
func (s *settings) checkServers(rdb redis.UniversalClient) error {
	switch rdb := rdb.(type) {
	case *redis.Client:
		if rdb != nil {
			s.workers, s.bounded = max(1, rdb.Options().PoolSize), rdb.Options().ContextTimeoutEnabled
			return nil
		}
	case *redis.ClusterClient:
		if rdb != nil {
			s.workers, s.bounded, s.mapped = max(1, rdb.Options().PoolSize), rdb.Options().ContextTimeoutEnabled, true
			return nil
		}
	case nil:
	case *redis.Ring:
		return errors.New("redisson: a redis.Ring moves keys to other servers when one is down, so two holders could have one lock; use a single server, Sentinel or Redis Cluster")
	default:
		return fmt.Errorf("redisson: %T is not a client that this package knows: it has to know which server has a key, and to send scripts one by one; give it the *redis.Client or *redis.ClusterClient inside", rdb)
	}
	return errors.New("redisson: no Redis client given")
}

// backoff is a growing pause. Each is a random one between the present step and twice as long.
type backoff struct{ first, longest time.Duration }

// next returns a pause and doubles the step, up to the longest.
func (b *backoff) next() time.Duration {
	d := b.first + rand.N(b.first)
	b.first = min(2*b.first, b.longest)
	return min(d, b.longest)
}

// ErrNotReplicated is the error of an Acquire that too few replicas have confirmed in time; see [SyncReplicas]. The
// lock is not held: it was given back.
var ErrNotReplicated = transport.ErrNotReplicated

func (s *settings) checkReplicas() error {
	switch r := &s.sync; {
	case *r == transport.Replicas{}:
	case r.Count == transport.Online:
		r.Timeout = min(time.Second, s.timeout/3)
	case r.Count < 1:
		return fmt.Errorf("redisson: SyncReplicas of %d replicas", r.Count)
	case r.Timeout < time.Millisecond || r.Timeout >= s.timeout:
		return fmt.Errorf("redisson: SyncReplicas within %v: it must be at least 1ms and less than the client's timeout, %v", r.Timeout, s.timeout)
	}
	return nil
}
