package redisson

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/latchkey-go/latchkey/internal/reply"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson/internal/pubsub"
	"github.com/latchkey-go/latchkey/redisson/internal/transport"
	"github.com/redis/go-redis/v9"
)

// ErrClosed is why an Acquire fails, and why a hold is lost, after Close. A change, such as the Release of a semaphore, is still made
// then; where Redis does not answer it, the error matches ErrClosed, and nobody tries again.
var ErrClosed = errors.New("redisson: client is closed")

// closeGrace is how long Close waits for the work of holds that it has ended.
const closeGrace = 500 * time.Millisecond

// lateness is how long, at least, a script whose connection broke is taken to be on its way to Redis.
const lateness = 5 * time.Second

// Client makes Redis locks with Redisson's data. It is a lock.Locker, safe for concurrent use, and meant to be made once
// for a process: its goroutines line up inside of it, and one of them asks Redis.
type Client struct {
	settings
	rdb redis.UniversalClient
	own bool   // rdb was made by Open
	id  string // a v4 UUID, the first part of each holder id

	holders    atomic.Int64
	topology   *pubsub.Topology
	road       *transport.Road
	registry   *registry
	listener   *forceListener
	presence   *presence
	queues     localQueues
	waiters    waiters
	subscriber *pubsub.Subscriber
	receipts   receipts
	turns      sync.Map     // the newest calls that were announced, *turn by the name of the lock
	apart      atomic.Bool  // what is for several locks goes one by one: a server has refused to do it together
	located    atomic.Int32 // locks that were seen where they belong; see proofs
	elsewhere  atomic.Pointer[elsewhere]
	metrics    *metrics

	ctx     context.Context // ends with Close
	cancel  context.CancelCauseFunc
	closing sync.Once
	stop    chan struct{} // ends the goroutines that Close waits for
	wg      sync.WaitGroup
}

var _ lock.Locker = (*Client)(nil)

// New returns a Client on rdb: a *redis.Client, for a single server or Sentinel, or a *redis.ClusterClient. It does not talk to
// Redis, so that a program can start without it. Close the Client before rdb, which stays the caller's; [Open] makes both.
//
// The timeouts of rdb do not matter to callers; those of this package hold. Set ContextTimeoutEnabled in its options, as [Open]
// does: then a connection to a silent server is given up as soon as they are over, and a lone caller on a fast network sends its
// questions itself, which takes a third less time than having another goroutine wait in its place.
func New(rdb redis.UniversalClient, opts ...Option) (*Client, error) {
	s := settingsOf(opts)
	if err := cmp.Or(s.checkServers(rdb), s.check()); err != nil {
		return nil, err
	}
	m, err := newMetrics(s.meters)
	if err != nil {
		return nil, fmt.Errorf("redisson: %w", err)
	}
	c := &Client{settings: s, rdb: rdb, id: newUUID(), stop: make(chan struct{}), metrics: m}
	c.ctx, c.cancel = context.WithCancelCause(context.Background())
	c.topology = pubsub.NewTopology(rdb, pubsub.Mode(s.sharded))
	c.road = transport.New(rdb, c.topology, transport.Settings{Timeout: s.timeout, Workers: s.workers, Bounded: s.bounded, Replicas: s.sync, Refuse: refused, Overload: lock.ErrOverload, Observer: m})
	c.registry = newRegistry(s.watchdogTimeout, max(lateness, 2*s.timeout))
	c.presence = newPresence(c)
	c.subscriber = pubsub.NewSubscriber(c.topology)
	c.queues = localQueues{subscriber: c.subscriber, timeout: c.registry.timeout, client: c.id, byID: map[queueID]*localQueue{}, asking: map[queueID]bool{}, aloof: map[queueID]time.Time{}}
	c.waiters = waiters{mostOfKey: s.mostOfKey, most: s.mostWaiters, metrics: m, ofKey: map[string]int{}}
	c.registry.metrics = m
	c.listener = newForceListener(c)
	c.registry.onHeld = func() {
		c.listener.held()
		c.presence.held()
	}
	if m != nil {
		m.client.Store(c)
	}
	c.wg.Go(func() { c.watch(c.stop) })
	return c, nil
}

// Open returns a Client with a go-redis client of its own, which Close closes, for what the URL names:
//
//   - redis://user:password@host:6379/0 is a server, as [redis.ParseURL] has it, and rediss:// is TLS;
//   - redis://host1:6379?addr=host2:6379 is a cluster by some of its nodes, as [redis.ParseClusterURL] has it. Without addr, one node of a
//     cluster is refused as soon as it says that another one has a key;
//   - redis://sentinel1:26379?master_name=main&addr=sentinel2:26379 is the master that sentinels call main, as [redis.ParseFailoverURL]
//     has it: the user before the host is the sentinels', and username, password and db are parameters.
//
// Each connection asks for its [Credentials]. CLIENT LIST shows it by the URL's client_name, or that of [Name], or else
// the program's, with dashes for characters that Redis does not take; that needs no right. Locks are at masters alone,
// so options that route to replicas are ignored. Like New, Open does not talk to Redis. An error quotes nothing of a
// password.
func Open(url string, opts ...Option) (*Client, error) {
	s := settingsOf(opts)
	d := reply.Dialling{Credentials: s.credentials, Name: cmp.Or(s.name, filepath.Base(os.Args[0]))}
	d.Pool = max(2*transport.GatherFrom, 10*runtime.GOMAXPROCS(0)) // the second is go-redis' own
	rdb, err := d.Client(url)
	if err != nil {
		return nil, fmt.Errorf("redisson: %w", err)
	}
	c, err := New(rdb, opts...)
	if err != nil {
		return nil, errors.Join(err, rdb.Close())
	}
	c.own = true
	return c, nil
}

// Ping asks Redis for a sign of life, in a cluster any master, for health checks. It names no key, so any user may ask who may use locks. The
// error is the cause of ctx, or says that Redis did not answer within the client's timeout.
func (c *Client) Ping(ctx context.Context) error {
	if c.ctx.Err() != nil {
		return ErrClosed
	}
	return c.query(ctx, call{Script: sign, Keys: []string{""}}).Err
}

// query asks for something without changing it. Unlike a change, it does not go out when ctx has ended.
func (c *Client) query(ctx context.Context, cl call) answer {
	if ctx.Err() != nil {
		return answer{Err: context.Cause(ctx)}
	}
	return c.road.AskSoon(ctx, cl)
}

// queryNamed is query about the object of a name, as given, which may be refused.
func (c *Client) queryNamed(ctx context.Context, name string, cl call) answer {
	if err := c.checkName(name); err != nil {
		return answer{Err: err}
	}
	return c.query(ctx, cl)
}

// background runs f without its caller. Close waits for it; after a Close, the caller does.
func (c *Client) background(f func()) {
	if c.registry.begin() != nil {
		f()
		return
	}
	c.wg.Go(func() {
		defer c.registry.end()
		f()
	})
}

// attending returns the context for the wait for a release or a change. After a Close, the background no longer
// continues these, so they must be on their way before the caller leaves: then the context ends a moment after ctx,
// with its cause.
func (c *Client) attending(ctx context.Context) (context.Context, context.CancelFunc) {
	if c.ctx.Err() == nil {
		return ctx, func() {}
	}
	later, end := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		time.AfterFunc(transport.GoneInterval, func() { end(context.Cause(ctx)) })
	})
	return later, func() {
		stop()
		end(nil)
	}
}

// ID is the client's part of each holder id: a version 4 UUID, new for each Client.
func (c *Client) ID() string { return c.id }

// Close ends the client's work and waits for it: waiting Acquires fail with ErrClosed, and the contexts of held locks
// end with ErrLost, because nothing renews them any more. It waits half a second for the work under these to release
// them, and as long as [Timeout] for the answers of Redis that are under way. Locks that are still held then stay in
// Redis until they are released, which still works as long as the Redis client does, or until their lease ends. A
// second Close does nothing.
func (c *Client) Close() (err error) {
	c.closing.Do(func() {
		bound, cancel := context.WithTimeout(context.Background(), closeGrace+max(0, c.timeout-transport.GoneInterval))
		defer cancel()
		quiet := c.registry.close(ErrClosed)
		c.cancel(ErrClosed)
		c.wg.Go(c.subscriber.Close)
		grace := time.AfterFunc(closeGrace, c.registry.stopAwaiting)
		defer grace.Stop()
		select {
		case <-quiet:
		case <-bound.Done():
		}
		c.presence.leave(bound)
		close(c.stop)
		c.road.Close()
		c.wg.Wait()
		c.metrics.close()
		if c.own {
			err = c.rdb.Close()
		}
	})
	return err
}

// nextHolder returns a holder id that no lock has had: Redisson's "<uuid>:<thread id>", with a number over 2^62 for the thread, whose own is small. The
// number of one that wakes who stands in a wake list is over 2^61, which begins with 2 or 3. A permit's id is 16 bytes
// instead, as Redisson's is: the first half of the client's, of which the second follows, random bits, "lk" if it wakes who stands in a wake
// list, or else "--", and a number.
func (c *Client) nextHolder(k lock.Kind) string {
	if k == lock.Permit {
		id, _ := hex.AppendDecode(make([]byte, 0, permitSize), []byte(strings.ReplaceAll(c.id[:idStart], "-", "")))
		id = binary.BigEndian.AppendUint32(id, randomBits())
		id = append(id, map[bool]string{true: "lk", false: "--"}[c.road.Spares()]...)
		return string(binary.BigEndian.AppendUint16(id, uint16(c.holders.Add(1)))) //nolint:gosec // it may come again
	}
	number := 1<<62 | int64(randomBits())<<30 | c.holders.Add(1)&(1<<30-1)
	if keepsList(k) && c.road.Spares() {
		number = number&(1<<60-1) | 1<<61
	}
	return c.id + ":" + strconv.FormatInt(number, 10)
}

// randomBits returns bits that differ between processes that go on from one memory image, such as clones of a virtual
// machine: these have one client id and the same counters. So the bits come from the operating system, when they are
// needed.
func randomBits() uint32 {
	var b [4]byte
	rand.Read(b[:]) // never fails
	return binary.LittleEndian.Uint32(b[:])
}

const (
	permitSize = 16
	idStart    = len("xxxxxxxx-xxxx-xxxx") // of a client's id, from which the rest follows
)

func newUUID() string {
	var start [8]byte
	rand.Read(start[:]) // never fails
	start[6] = start[6]&0x0f | 0x40
	return idFrom(start[:])
}

// idFrom returns the client's id that begins with these bytes.
func idFrom(start []byte) string {
	rest := sha256.Sum256(start)
	b := append(slices.Clip(start), rest[:8]...)
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
