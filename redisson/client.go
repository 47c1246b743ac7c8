package redisson

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson/internal/pubsub"
	"github.com/redis/go-redis/v9"
)

// ErrClosed is why an Acquire fails, and why a hold is lost, after Close.
var ErrClosed = errors.New("redisson: client is closed")

// Defaults of a Client; Redisson's own.
const (
	DefaultWatchdogTimeout = 30 * time.Second
	DefaultTimeout         = 3 * time.Second
	// DefaultFairLockWaitTimeout is the deadline, in the queue of a fair lock, of a waiter that waits as long as its context.
	DefaultFairLockWaitTimeout = 5 * time.Minute
	// DefaultSpinMin and DefaultSpinMax are the first and the longest pause of a waiter for a spin lock.
	DefaultSpinMin = time.Millisecond
	DefaultSpinMax = 128 * time.Millisecond
)

// Client makes Redis locks with Redisson's data. It is a lock.Locker, safe for concurrent use, and meant to be made once
// for a process: its goroutines line up inside of it, and one of them asks Redis.
type Client struct {
	rdb      redis.UniversalClient
	id       string // a v4 UUID, the first part of each holder id
	timeout  time.Duration
	mapName  func(string) string
	fairWait time.Duration
	spin     backoff
	// interruptible says that rdb stops waiting for an answer when a context's deadline has passed.
	interruptible bool

	holders  atomic.Int64
	watchdog *watchdog
	lines    lines
	receipts receipts
	topology topology
	channels *pubsub.Subscriber
	sync     syncReplicas

	ctx    context.Context // ends with Close
	cancel context.CancelCauseFunc
	mu     sync.Mutex // orders start with Close
	wg     sync.WaitGroup
	seats  map[seatKey]*seat // guarded by the watchdog's mutex
}

var _ lock.Locker = (*Client)(nil)

// Option sets up a Client.
type Option interface{ apply(*settings) }

type settings struct {
	watchdogTimeout time.Duration
	timeout         time.Duration
	mapName         func(string) string
	fairWait        time.Duration
	spin            backoff
	sharded         ShardedMode
	sync            syncReplicas
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
// fails. The default is DefaultTimeout; less than 1ms is refused. The go-redis client's own timeouts should not be longer.
func Timeout(d time.Duration) Option {
	return optionFunc(func(s *settings) { s.timeout = d })
}

// NameMapper turns the name of a lock into its key in Redis, as Redisson's NameMapper does; all names that are derived
// from it use the result. The default leaves names as they are.
func NameMapper(f func(name string) string) Option {
	return optionFunc(func(s *settings) { s.mapName = f })
}

// FairLockWaitTimeout is the deadline in the queue of a fair lock for a waiter that waits as long as its context,
// Redisson's setting of that name. After it, a waiter counts as dead, and has to join the queue again at its end. The
// default is DefaultFairLockWaitTimeout; less than a second is refused.
func FairLockWaitTimeout(d time.Duration) Option {
	return optionFunc(func(s *settings) { s.fairWait = d })
}

// SpinBackoff sets how long a waiter for a spin lock pauses between two tries: at first between first and twice as long, at
// random, then twice that each time, up to longest. The defaults are DefaultSpinMin and DefaultSpinMax.
func SpinBackoff(first, longest time.Duration) Option {
	return optionFunc(func(s *settings) { s.spin = backoff{first, longest} })
}

// ShardedPubSub chooses the kind of channels in a Redis Cluster. The default is ShardedAuto, as in Redisson; set it to what
// the peers in Java have if they differ from that. Where there is no cluster, ShardedOn is refused.
func ShardedPubSub(m ShardedMode) Option {
	return optionFunc(func(s *settings) { s.sharded = m })
}

// SyncReplicas has each Acquire confirmed by n replicas of the lock's master with WAIT, so that a failover can't lose the
// lock as long as one of these replicas becomes the master. If they have not confirmed it after timeout, which must be less
// than that of the client, the lock is given back and the Acquire fails with ErrNotReplicated. It also delays, by timeout
// at most, the answer that a lock is busy. Releases and renewals are not confirmed. By default nothing is.
func SyncReplicas(n int, timeout time.Duration) Option {
	return optionFunc(func(s *settings) { s.sync = syncReplicas{n, timeout} })
}

// New returns a Client on rdb: a single server, Sentinel or Cluster client of go-redis. It does not talk to Redis, so that
// a program can start without it. Close the Client before rdb, which stays the caller's.
//
// Set ContextTimeoutEnabled in the options of rdb: without it, go-redis can't be kept to a deadline, and each question
// needs a goroutine of its own so that its caller can be.
func New(rdb redis.UniversalClient, opts ...Option) (*Client, error) {
	s := settings{
		watchdogTimeout: DefaultWatchdogTimeout,
		timeout:         DefaultTimeout,
		mapName:         func(name string) string { return name },
		fairWait:        DefaultFairLockWaitTimeout,
		spin:            backoff{DefaultSpinMin, DefaultSpinMax},
	}
	for _, o := range opts {
		o.apply(&s)
	}
	if err := s.check(rdb); err != nil {
		return nil, err
	}
	c := &Client{
		rdb:     rdb,
		id:      newUUID(),
		timeout: s.timeout,
		mapName: s.mapName,
		sync:    s.sync,

		fairWait: s.fairWait,
		spin:     s.spin,

		interruptible: honoursDeadlines(rdb),
		seats:         map[seatKey]*seat{},
	}
	c.ctx, c.cancel = context.WithCancelCause(context.Background())
	c.topology = topology{pubsub.NewTopology(rdb, pubsub.Mode(s.sharded))}
	c.channels = pubsub.NewSubscriber(rdb, c.topology.Topology)
	c.lines = lines{channels: c.channels, byKey: map[lineKey]*line{}}
	c.watchdog = newWatchdog(s.watchdogTimeout, 2*s.timeout, c.sendBatch)
	c.wg.Go(func() { c.watchdog.run(c.ctx) })
	return c, nil
}

func honoursDeadlines(rdb redis.UniversalClient) bool {
	switch rdb := rdb.(type) {
	case *redis.Client:
		return rdb.Options().ContextTimeoutEnabled
	case *redis.ClusterClient:
		return rdb.Options().ContextTimeoutEnabled
	}
	return false
}

func (s *settings) check(rdb redis.UniversalClient) error {
	switch rdb.(type) {
	case nil:
		return errors.New("redisson: no Redis client given")
	case *redis.Ring:
		return errors.New("redisson: a redis.Ring moves keys to other servers when one is down, so two holders could have one lock; use a single server, Sentinel or Redis Cluster")
	case *redis.ClusterClient:
	default:
		if s.sharded == ShardedOn {
			return errors.New("redisson: sharded channels are there in a Redis Cluster only")
		}
	}
	switch {
	case s.watchdogTimeout < 30*time.Millisecond:
		return fmt.Errorf("redisson: watchdog timeout %v is under 30ms", s.watchdogTimeout)
	case s.timeout < time.Millisecond:
		return fmt.Errorf("redisson: timeout %v is under 1ms", s.timeout)
	case s.fairWait < time.Second:
		return fmt.Errorf("redisson: fair lock wait timeout %v is under 1s", s.fairWait)
	case s.spin.first < time.Microsecond || s.spin.longest < s.spin.first:
		return fmt.Errorf("redisson: spin back-off from %v to %v must grow, from 1µs at least", s.spin.first, s.spin.longest)
	case s.mapName == nil:
		return errors.New("redisson: name mapper is nil")
	case s.sharded < ShardedAuto || s.sharded > ShardedOff:
		return fmt.Errorf("redisson: no such ShardedMode: %d", s.sharded)
	}
	return s.sync.check(s.timeout)
}

// ID is the client's part of each holder id: a version 4 UUID, new for each Client.
func (c *Client) ID() string { return c.id }

// Close ends the client's work and waits for it: waiting Acquires fail with ErrClosed, and the contexts of held locks end
// with ErrLost, because nothing renews them any more. Locks that are held stay in Redis until they are released, which
// still works, or until their lease ends. A second Close does nothing.
func (c *Client) Close() error {
	c.mu.Lock()
	c.cancel(ErrClosed)
	c.mu.Unlock()
	c.channels.Close()
	c.wg.Wait()
	return nil
}

// start runs f in a goroutine that Close waits for. After Close it runs f as well, but nobody waits: that is a release,
// which must still go out.
func (c *Client) start(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx.Err() != nil {
		go f()
		return
	}
	c.wg.Go(f)
}

// nextHolder returns a holder id that no lock has had: Redisson's "<uuid>:<thread id>", with a number for the thread.
// Each time an owner comes to a lock that it does not hold, it comes under a new id, so that a script that was delayed on
// its way can't touch a later hold. A permit's id is 16 random bytes instead.
func (c *Client) nextHolder(f family) string {
	if f == (permit{}) {
		var id [16]byte
		rand.Read(id[:]) // never fails
		return string(id[:])
	}
	return c.id + ":" + strconv.FormatInt(c.holders.Add(1), 10)
}

func newUUID() string {
	var b [16]byte
	rand.Read(b[:]) // never fails
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
