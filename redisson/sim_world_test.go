package redisson_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/latchkey-go/latchkey/internal/sim"
	"github.com/latchkey-go/latchkey/redisson"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

const (
	simClients = 3
	simOwners  = 2 // of each client
	simTimeout = time.Second
	simSlow    = 3 // times the timeout, a slow client waits for an answer
)

// simTimes are how long things take in a world.
type simTimes struct {
	watchdog, timeout, fairWait time.Duration
	least, most                 time.Duration // of leases
	calm                        time.Duration // after which nothing may be left that nobody has
	grace                       time.Duration // in which a holder may hear that its time is over
	scale                       time.Duration // of all else
}

// virtualTimes are those of a simulation. The watchdog's is no multiple of anything, so that its timers do not end at the very
// instant of others: which of two was first would be left to the scheduler.
var virtualTimes = simTimes{
	watchdog: 3*time.Second + 7001, timeout: simTimeout, fairWait: 5 * time.Second,
	least: 300 * time.Millisecond, most: 20 * time.Second, calm: 30 * time.Second, scale: 1,
}

// stage is where a world is played: in a simulation, or on a real server.
type stage interface {
	// Note adds a line to the trace, Reach counts that something has happened, and Since is how long the world lasts.
	Note(format string, args ...any)
	Reach(what string)
	Since() time.Duration
	// Heal ends all faults.
	Heal()
	// Keys, TTL and Subscriptions are what the server has.
	Keys() []string
	TTL(key string) time.Duration
	Subscriptions() []string
}

// world is what happens for one seed: clients with owners, who take what the scene has, on one server.
type world struct {
	options simOptions
	scene   scene
	times   simTimes
	net     stage
	sim     *sim.Network // nil on a real server
	judge   *judge
	clients []*redisson.Client
	rdbs    []*redis.Client
	forces  map[string]bool // forced releases that were done; guarded by the network, which runs one command at a time

	sections atomic.Int64
	vain     atomic.Int64 // removals that found nothing
	failed   atomic.Int64 // calls that may have left something
}

// play lets the owners live, first with faults and then without, and looks at what they leave. When the faults end, all are
// waiting.
func (w *world) play() {
	for w.scene.prepare != nil && w.scene.prepare(w.clients[0]) != nil {
		time.Sleep(time.Second)
	}
	owners := w.owners()
	each(owners, (*owner).live)
	time.AfterFunc(time.Second/w.times.scale, w.net.Heal)
	time.Sleep(w.scene.calm)
	each(owners, (*owner).last)
	time.Sleep(w.times.calm)
	if vain, failed := w.vain.Load(), w.failed.Load(); w.options.scene == "plain" && vain > 20*(failed+1) { // mostly it is a quarter of that
		w.judge.accuse("vain: %d removals found nothing after %d calls had failed", vain, failed)
	}
	w.inspect()
}

func (w *world) owners() []*owner {
	all := make([]*owner, simClients*simOwners)
	for i := range all {
		all[i] = &owner{w: w, process: i / simOwners, client: w.clients[i/simOwners], name: fmt.Sprint("w", i), rand: rand.New(rand.NewPCG(w.options.seed, uint64(i+1)))}
	}
	return all
}

// each runs f for all owners at once.
func each(owners []*owner, f func(*owner)) {
	var all sync.WaitGroup
	for _, o := range owners {
		all.Go(func() { f(o) })
	}
	all.Wait()
}

// connect makes a client, whose connections the change sets up.
func (w *world) connect(t *testing.T, i int, change func(*redis.Options)) {
	opts := &redis.Options{
		Addr: "127.0.0.1:6379", Protocol: 2, DisableIdentity: true, PoolSize: 64, MaxRetries: -1,
		ContextTimeoutEnabled:    w.options.ctx == "on",
		ReadTimeout:              w.times.timeout,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
	if w.options.ctx == "slow" {
		opts.ReadTimeout *= simSlow
	}
	change(opts)
	rdb := redis.NewClient(opts)
	pause := 40*time.Millisecond + time.Duration(i)*time.Microsecond // without chance
	c, err := redisson.New(rdb, redisson.WatchdogTimeout(w.times.watchdog), redisson.Timeout(w.times.timeout),
		redisson.FairLockWaitTimeout(w.times.fairWait), redisson.SpinBackoff(pause, pause))
	if err != nil {
		t.Fatal(err)
	}
	w.clients, w.rdbs = append(w.clients, c), append(w.rdbs, rdb)
}

// inspect finds what nobody needs any more.
func (w *world) inspect() {
	own := func(channel string) bool { // where who has waited for a fair lock listens for an hour
		return w.scene.ghosts && strings.HasPrefix(channel, "latchkey_client:")
	}
	if left := slices.DeleteFunc(w.net.Subscriptions(), own); len(left) > 0 {
		w.judge.accuse("left: subscriptions %q", left)
	}
	for _, key := range w.net.Keys() {
		if !w.scene.stays(w, key) {
			w.judge.accuse("left: key %s", key)
		}
	}
	if w.scene.final == nil || w.sim == nil {
		return
	}
	if wrong := w.scene.final(w); wrong != "" {
		w.judge.accuse("left: %s", wrong)
	}
}

func (w *world) close() {
	for i, c := range w.clients {
		_ = c.Close()
		_ = w.rdbs[i].Close()
	}
}

// past remembers the keys that begin so. They wait, and end, in a database of their own.
func past(prefixes ...string) func(*miniredis.Miniredis) (back func()) {
	var next atomic.Int32
	ours := func(key string) bool {
		return slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(key, prefix) })
	}
	return func(server *miniredis.Miniredis) func() {
		db := int(next.Add(1))
		move := func(from, to int) {
			for _, key := range server.DB(from).Keys() {
				if ours(key) {
					copyKey(server.DB(from), server.DB(to), key)
				}
			}
		}
		move(0, db)
		return func() {
			for _, key := range server.Keys() {
				if ours(key) {
					server.Del(key)
				}
			}
			move(db, 0)
			server.DB(db).FlushDB()
		}
	}
}

// copyKey copies a key, of a type that the scenes have, to another database. Miniredis' own Copy takes no lock, and a judge may look meanwhile.
func copyKey(from, to *miniredis.RedisDB, key string) {
	to.Del(key)
	switch from.Type(key) {
	case "string":
		value, _ := from.Get(key)
		_ = to.Set(key, value)
	case "hash":
		fields, _ := from.HKeys(key)
		for _, field := range fields {
			to.HSet(key, field, from.HGet(key, field))
		}
	case "list":
		values, _ := from.List(key)
		_, _ = to.Push(key, values...)
	case "zset":
		scores, _ := from.SortedSet(key)
		for member, score := range scores {
			_, _ = to.ZAdd(key, score, member)
		}
	}
	if ttl := from.TTL(key); ttl > 0 {
		to.SetTTL(key, ttl)
	}
}
