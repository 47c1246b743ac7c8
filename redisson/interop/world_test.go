package interop

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson"
	"github.com/redis/go-redis/v9"
)

// world is what a scenario is played in: a server of its own and a client on each side.
type world struct {
	t       *testing.T
	on      setting
	server  *redistest.Server // nil in a cluster
	cluster *redistest.Cluster
	rdb     redis.UniversalClient // looks on
	java    *javaClient
	client  *redisson.Client
}

func newWorld(t *testing.T, on setting) *world {
	t.Helper()
	w := &world{t: t, on: on}
	if on.cluster {
		w.cluster = redistest.StartCluster(t, on.replicas)
	} else {
		w.server = redistest.Start(t)
	}
	w.rdb = w.connect()
	w.java = w.newJava(nil)
	w.client = w.newClient()
	return w
}

// newMappedJava makes one more client of Redisson, with a name mapper that puts the prefix before each name.
func (w *world) newMappedJava(prefix string) *javaClient {
	w.t.Helper()
	return newJava(w.t, sharedPeer(w.t, w.on.version), w.config(nil), prefix)
}

// newJava makes one more client of Redisson, with these settings.
func (w *world) newJava(settings map[string]any) *javaClient {
	w.t.Helper()
	return newJava(w.t, sharedPeer(w.t, w.on.version), w.config(settings), "")
}

// config is what a client of Redisson needs to know.
func (w *world) config(settings map[string]any) map[string]any {
	if w.on.cluster {
		return clusterConfig(w.addrs(), w.on.javaMode, settings)
	}
	return config(w.addrs()[0], settings)
}

// addrs are where to connect.
func (w *world) addrs() (addrs []string) {
	if !w.on.cluster {
		return []string{w.server.Addr}
	}
	for _, n := range w.cluster.Masters {
		addrs = append(addrs, n.Addr)
	}
	return addrs
}

// connect makes one more go-redis client.
func (w *world) connect() redis.UniversalClient {
	w.t.Helper()
	rdb := redis.NewUniversalClient(&redis.UniversalOptions{Addrs: w.addrs(), IsClusterMode: w.on.cluster, ContextTimeoutEnabled: true})
	w.t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

// servers are those that may have keys and subscriptions.
func (w *world) servers() (all []redis.UniversalClient) {
	if !w.on.cluster {
		return []redis.UniversalClient{w.rdb}
	}
	for _, n := range slices.Concat(w.cluster.Masters, w.cluster.Replicas) {
		all = append(all, n.Admin)
	}
	return all
}

// newClient makes one more client of package redisson, with Redisson's patience in fair queues, so that deadlines are to be
// the same.
func (w *world) newClient(opts ...redisson.Option) *redisson.Client {
	w.t.Helper()
	opts = append([]redisson.Option{redisson.FairLockWaitTimeout(5 * time.Minute)}, opts...)
	if w.on.cluster {
		opts = append(opts, redisson.ShardedPubSub(w.on.mode))
	}
	return newClient(w.t, w.connect(), opts...)
}

func newClient(tb testing.TB, rdb redis.UniversalClient, opts ...redisson.Option) *redisson.Client {
	tb.Helper()
	c, err := redisson.New(rdb, opts...)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = c.Close() })
	return c
}

// pair is one lock seen from both sides.
func (w *world) pair(name string) (java *javaMutex, golang *goMutex) {
	return newJavaMutex(w.t, w.java, step{"getLock", name}), newGo(w.t, w.client.Lock(name))
}

// fairPair is one fair lock seen from both sides.
func (w *world) fairPair(name string) (java *javaMutex, golang *goMutex) {
	return newJavaMutex(w.t, w.java, step{"getFairLock", name}), newGo(w.t, w.client.FairLock(name))
}

// bothWays plays a scenario for two sides of a plain lock twice, each side in each part.
func bothWays(t *testing.T, on setting, play func(w *world, name string, holder, other mutex)) {
	swap(t, on, (*world).pair, play)
}

// fairBothWays does so for a fair lock.
func fairBothWays(t *testing.T, on setting, play func(w *world, name string, holder, other mutex)) {
	swap(t, on, (*world).fairPair, play)
}

func swap(t *testing.T, on setting, pair func(*world, string) (*javaMutex, *goMutex), play func(w *world, name string, holder, other mutex)) {
	w := newWorld(t, on)
	java, golang := pair(w, "java-first")
	play(w, "java-first", java, golang)
	java, golang = pair(w, "go-first")
	play(w, "go-first", golang, java)
}

// beside plays a part of a scenario beside its other parts.
func (w *world) beside(t *testing.T, name string, play func(w *world)) {
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		w := *w
		w.t = t
		play(&w)
	})
}

// take takes a lock that is free, or held by the thread.
func (w *world) take(m mutex, thread string, lease time.Duration) result {
	w.t.Helper()
	r := m.take(thread, 0, lease)
	if !r.ok || r.err != nil {
		w.t.Fatalf("%v takes the lock: %v, %v", m, r.ok, r.err)
	}
	return r
}

// startChild starts a Go process that acquires what is requested.
func (w *world) startChild(watchdog time.Duration, r lock.Request) *child {
	w.t.Helper()
	return startChild(w.t, order{Addrs: w.addrs(), Cluster: w.on.cluster, Watchdog: watchdog, Request: r})
}

// mortal is a client of Redisson in a process that the scenario may kill.
func (w *world) mortal(settings map[string]any) (c *javaClient, kill func()) {
	w.t.Helper()
	p := ownPeer(w.t, w.on.version)
	return newJava(w.t, p, w.config(settings), ""), p.kill
}

// wait has a thread wait for the lock, and returns when it is seen to.
func (w *world) wait(m mutex, thread, channel string, limit time.Duration) *pending {
	w.t.Helper()
	return w.beginAt(channel, fmt.Sprintf("%v waits for the lock", m), func() result { return m.take(thread, limit, 0) })
}

// passes has a thread wait for the lock, take it, and give it back when a thread of Redisson's that it keeps out is asleep, which
// would otherwise miss the message.
func (w *world) passes(m mutex, thread string) *pending {
	return begin(w.t, fmt.Sprintf("%v passes", m), func() result {
		r := m.take(thread, forever, 0)
		if r.ok && r.err == nil {
			w.pass(200 * time.Millisecond)
			r.err = m.unlock(thread).err
		}
		return r
	})
}

// refused expects that the lock cannot be had now.
func (w *world) refused(m mutex, thread string) {
	w.t.Helper()
	if r := m.take(thread, 0, 0); r.ok || r.err != nil {
		w.t.Errorf("%v tries a lock that the other holds: %v, %v; want false", m, r.ok, r.err)
	}
}

// beginAt begins something on either side, and returns when it is seen to wait.
func (w *world) beginAt(channel, what string, op func() result) *pending {
	w.t.Helper()
	before := w.lastingSubscribers(channel)
	p := begin(w.t, what, op)
	w.eventually(what+" waits", func() bool { return w.subscribers(channel) > before })
	return p
}

// release gives the lock back.
func (w *world) release(m mutex, thread string) result {
	w.t.Helper()
	r := m.unlock(thread)
	if r.err != nil {
		w.t.Fatalf("%v gives back the lock: %v", m, r.err)
	}
	return r
}

// hash is the lock's data: a count by holder.
func (w *world) hash(name string) map[string]string {
	w.t.Helper()
	return must[map[string]string](w.t)(w.rdb.HGetAll(context.Background(), name).Result())
}

// only expects one holder with one of the counts, and returns it.
func (w *world) only(name string, counts ...string) (holder string) {
	w.t.Helper()
	hash := w.hash(name)
	for h, n := range hash {
		if len(hash) == 1 && slices.Contains(counts, n) {
			return h
		}
	}
	w.t.Fatalf("%s = %v, want one holder with %s", name, hash, strings.Join(counts, " or "))
	return ""
}

// subscribers is how many listen to a channel, or to one of those below it that clients of this package have for a lock.
func (w *world) subscribers(channel string) (n int64) {
	w.t.Helper()
	for _, server := range w.servers() {
		below := strings.NewReplacer(`*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(channel) + ":*"
		n += int64(len(must[[]string](w.t)(server.PubSubChannels(context.Background(), below).Result())))
		n += int64(len(must[[]string](w.t)(server.PubSubShardChannels(context.Background(), below).Result())))
		n += must[map[string]int64](w.t)(server.PubSubNumSub(context.Background(), channel).Result())[channel]
		n += must[map[string]int64](w.t)(server.PubSubShardNumSub(context.Background(), channel).Result())[channel]
	}
	return n
}

// lastingSubscribers is how many there are when nobody has left for a second: a client listens for a little longer than it waits.
func (w *world) lastingSubscribers(channel string) int64 {
	w.t.Helper()
	n, since := w.subscribers(channel), time.Now()
	for n > 0 && time.Since(since) < time.Second {
		w.pass(5 * time.Millisecond)
		if now := w.subscribers(channel); now != n {
			n, since = now, time.Now()
		}
	}
	return n
}

// scripts is how many have run on a server that is alone.
func (w *world) scripts() (n int) {
	w.t.Helper()
	stats := must[string](w.t)(w.rdb.Info(context.Background(), "commandstats").Result())
	for _, m := range regexp.MustCompile(`cmdstat_eval(?:sha)?:calls=(\d+).*failed_calls=(\d+)`).FindAllStringSubmatch(stats, -1) {
		n += must[int](w.t)(strconv.Atoi(m[1])) - must[int](w.t)(strconv.Atoi(m[2])) // one that it did not know fails first
	}
	return n
}

// leftovers are all keys, and all channels that are listened to.
func (w *world) leftovers() (keys, channels []string) {
	w.t.Helper()
	for _, server := range w.servers() {
		keys = append(keys, must[[]string](w.t)(server.Keys(context.Background(), "*").Result())...)
		channels = append(channels, must[[]string](w.t)(server.PubSubChannels(context.Background(), "redisson*").Result())...)
		channels = append(channels, must[[]string](w.t)(server.PubSubShardChannels(context.Background(), "redisson*").Result())...)
	}
	return keys, channels
}

// clean expects that nothing is left of any lock, but for what the version is known to leave.
func (w *world) clean() {
	w.t.Helper()
	var keys, channels []string
	w.eventually("nothing is left", func() bool {
		keys, channels = w.leftovers()
		keys = slices.DeleteFunc(keys, w.receipt)
		if w.on.version == "3.52.0" { // takes the latch of an unlock away under a wrong name, so that it ends with its lease
			keys = slices.DeleteFunc(keys, func(k string) bool { return strings.HasPrefix(k, "redisson_unlock_latch:") })
		}
		return len(keys) == 0 && len(channels) == 0
	}, &keys, &channels)
}

// receipt reports whether a key is one that Go leaves where it counted, for a while.
func (w *world) receipt(key string) bool {
	return strings.HasPrefix(key, "latchkey_receipt:") && w.rdb.TTL(context.Background(), key).Val() > 0
}

// eventually waits for something that only a fault keeps from happening; a failure shows what is being looked at.
func (w *world) eventually(what string, ok func() bool, seen ...*[]string) {
	w.t.Helper()
	ticker := time.NewTicker(2 * time.Millisecond)
	defer ticker.Stop()
	for deadline := time.Now().Add(10 * time.Second); !ok(); <-ticker.C {
		if time.Now().After(deadline) {
			all := make([][]string, len(seen))
			for i, s := range seen {
				all[i] = *s
			}
			w.t.Fatalf("not within 10s: %s %q", what, all)
		}
	}
}

// between expects low < d ≤ high.
func (w *world) between(what string, d, low, high time.Duration) {
	w.t.Helper()
	if d <= low || d > high {
		w.t.Errorf("%s: %v, want it in (%v, %v]", what, d, low, high)
	}
}

// pass lets time go by.
func (w *world) pass(d time.Duration) {
	select {
	case <-time.After(d):
	case <-w.t.Context().Done():
	}
}

// soon is within what something happens that a waiter is notified of, on a machine that is busy with other things. Who is not notified
// waits longer, unless a scenario says otherwise: for 10s in Go, and for the lease that it has heard of in Java.
const soon = 5 * time.Second

// wakes plays a round of something that wakes a waiter, and expects that it had the lock within 100ms of the release.
func (w *world) wakes(round func() (released, woken result)) {
	w.t.Helper()
	w.wakesWithin(100*time.Millisecond, round)
}

// wakesWithin gives a machine that is busy with other things a few more rounds, but not for what takes so long that nobody was notified.
// Beside other scenarios, a second is good enough. It counts from the answer to the release, which may have to wait for one itself.
func (w *world) wakesWithin(limit time.Duration, round func() (released, woken result)) {
	w.t.Helper()
	if w.on.beside {
		limit = max(limit, time.Second)
	}
	var late []time.Duration
	for len(late) < 5 {
		released, woken := round()
		d := woken.end.Sub(released.start) - max(0, released.took())
		if d <= limit {
			return
		}
		late = append(late, d)
		if d > limit+soon {
			break
		}
	}
	w.t.Errorf("the waiter had the lock %v after the release, want %v", late, limit)
}
