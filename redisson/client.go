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
	"github.com/redis/go-redis/v9"
)

// ErrClosed is why an Acquire fails, and why a hold is lost, after Close.
var ErrClosed = errors.New("redisson: client is closed")

// Defaults of a Client; Redisson's own.
const (
	DefaultWatchdogTimeout = 30 * time.Second
	DefaultTimeout         = 3 * time.Second
)

// Client makes Redis locks with Redisson's data. It is a lock.Locker, safe for concurrent use, and meant to be made once
// for a process: its goroutines line up inside of it, and one of them asks Redis.
type Client struct {
	rdb     redis.UniversalClient
	id      string // a v4 UUID, the first part of each holder id
	timeout time.Duration
	mapName func(string) string
	// interruptible says that rdb stops waiting for an answer when a context's deadline has passed.
	interruptible bool

	holders  atomic.Int64
	watchdog *watchdog
	lines    lines
	permits  lines // for the permits of semaphores
	receipts receipts
	hub      *hub

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

// New returns a Client on rdb: a single server or Sentinel client of go-redis. It does not talk to Redis, so that a
// program can start without it. Close the Client before rdb, which stays the caller's.
//
// Set ContextTimeoutEnabled in the options of rdb: without it, go-redis can't be kept to a deadline, and each question
// needs a goroutine of its own so that its caller can be.
func New(rdb redis.UniversalClient, opts ...Option) (*Client, error) {
	s := settings{
		watchdogTimeout: DefaultWatchdogTimeout,
		timeout:         DefaultTimeout,
		mapName:         func(name string) string { return name },
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

		interruptible: honoursDeadlines(rdb),
		seats:         map[seatKey]*seat{},
	}
	c.ctx, c.cancel = context.WithCancelCause(context.Background())
	c.hub = newHub(c.ctx, rdb)
	c.lines = lines{hub: c.hub, channel: lockChannel, byName: map[string]*line{}}
	c.permits = lines{hub: c.hub, channel: semaphoreChannel, byName: map[string]*line{}}
	c.watchdog = newWatchdog(s.watchdogTimeout, 2*s.timeout, c.sendBatch)
	c.wg.Go(func() { c.watchdog.run(c.ctx) })
	return c, nil
}

func honoursDeadlines(rdb redis.UniversalClient) bool {
	single, ok := rdb.(*redis.Client)
	return ok && single.Options().ContextTimeoutEnabled
}

func (s *settings) check(rdb redis.UniversalClient) error {
	switch rdb.(type) {
	case nil:
		return errors.New("redisson: no Redis client given")
	case *redis.Ring:
		return errors.New("redisson: a redis.Ring moves keys to other servers when one is down, so two holders could have one lock; use a single server or Sentinel")
	case *redis.ClusterClient:
		return errors.New("redisson: Redis Cluster is not supported yet: its sharded channels, on which Redisson wakes waiters, are not listened to; use a single server or Sentinel")
	}
	switch {
	case s.watchdogTimeout < 30*time.Millisecond:
		return fmt.Errorf("redisson: watchdog timeout %v is under 30ms", s.watchdogTimeout)
	case s.timeout < time.Millisecond:
		return fmt.Errorf("redisson: timeout %v is under 1ms", s.timeout)
	case s.mapName == nil:
		return errors.New("redisson: name mapper is nil")
	}
	return nil
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
	c.hub.close()
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
// its way can't touch a later hold.
func (c *Client) nextHolder() string {
	return c.id + ":" + strconv.FormatInt(c.holders.Add(1), 10)
}

func newUUID() string {
	var b [16]byte
	rand.Read(b[:]) // never fails
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
