package main

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// lease is how long a lock outlives its holder, for each peer that has such a setting.
const lease = 30 * time.Second

// held is a lock that was taken.
type held interface {
	Release(ctx context.Context) error
}

// peer is a lock library, or what stands in for one, opened on a server.
type peer interface {
	// Lock waits for the lock as long as ctx, if the peer can wait at all.
	Lock(ctx context.Context, key string) (held, error)
	Close() error
}

// contestant says who a peer is and how to open it. The program runs each one in processes of its own.
type contestant struct {
	name   string
	about  string // how it is opened, for the README
	waits  bool   // for a lock that is held by others
	renews bool   // a lock that is held
	open   func(addr string) (peer, error)
}

// java is the name of the peer that is no Go program: see jvm.go.
const java = "redisson"

// contestants are all peers, in the order of the tables. The first is the base of most ratios.
var contestants = []contestant{
	{"go-redis", "`SET key token NX PX 30000`, and a script that compares and deletes, on a client as `redis.NewClient` makes it", false, false, openRaw},
	{"bare", "the two scripts that Latchkey sends for a pair, by `EVALSHA` on a go-redis client with the options that `redisson.Open` sets: the floor of a lock that is compatible with Redisson", false, false, openBare},
	{"bare-default", "the same on a client as `redis.NewClient` makes it, by goroutines that are kept to wait for its answers, as it heeds no deadline: the floor of a lock whose callers do", false, false, openBareDefault},
	{floorMany, "the same scripts in pipelines of all that 3 goroutines find when they come back: the floor of many callers", false, false, openGathered},
	{floorLine, "the scripts of `bare`, in a process whose callers stand in line and pass the lock on for as long as Latchkey does before they release it to all; a release says whether Redis still had the lock: the floor of a hand-over", true, false, openBareLine},
	{"latchkey", "`redisson.Open(url)`", true, true, openLatchkey},
	{"latchkey-default", "`redisson.New` on a client as `redis.NewClient` makes it", true, true, openLatchkeyDefault},
	{"rueidis", "the commands of go-redis above on `rueidis.NewClient`", false, false, openRueidis},
	{"redislock", "`Obtain` with a TTL of 30 s and `LinearBackoff(100ms)`, as its example has it; nothing is renewed", true, false, openRedislock},
	{"redsync", "`NewMutex` with an expiry of 30 s, and as many tries as it takes, after its default delays of 50 to 250 ms; nothing is renewed", true, false, openRedsync},
	{"rueidislock", "`KeyMajority: 1, NoLoopTracking: true`, as its README has it for one server; locks live for 5 s and are renewed every 2.5 s, its defaults", true, true, openRueidislock},
	{"rueidislock-3", "`NoLoopTracking: true` and the default majority: two of three keys", true, true, openRueidislock3},
	{java, "`getLock(name)`, `lock()` and `unlock()` of Redisson on a JVM that is warm; one thread a caller", true, true, nil},
}

// names returns those of the contestants that fit.
func names(fit func(contestant) bool) []string {
	var all []string
	for _, c := range contestants {
		if fit(c) {
			all = append(all, c.name)
		}
	}
	return all
}

func everyone(contestant) bool { return true }

// alone and many report whether a peer is of interest to one caller, and to many, where nobody waits.
func alone(c contestant) bool { return many(c) && c.name != floorMany }
func many(c contestant) bool  { return c.name != floorLine }

func (c contestant) canWait() bool { return c.waits }

func (c contestant) isGo() bool { return c.name != java }

// find returns the contestant of that name.
func find(name string) (contestant, error) {
	i := slices.IndexFunc(contestants, func(c contestant) bool { return c.name == name })
	if i < 0 {
		return contestant{}, fmt.Errorf("no peer is called %q", name)
	}
	return contestants[i], nil
}
