package redisson_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/cryptotest"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/internal/sim"
	"github.com/latchkey-go/latchkey/redisson"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

const (
	simClients  = 3
	simOwners   = 2 // of each client
	simWatchdog = 3 * time.Second
	simTimeout  = time.Second
	simFairWait = 5 * time.Second
	simLongest  = 20 * time.Second // of all leases
)

// world is a simulation of one seed: clients with owners, who take what the scene has, on one server.
type world struct {
	options simOptions
	scene   scene
	net     *sim.Network
	judge   *judge
	clients []*redisson.Client
	rdbs    []*redis.Client

	sections atomic.Int64
}

// simulate runs a world and returns it when all is over.
func simulate(t *testing.T, o simOptions) *world {
	w := &world{options: o, scene: simScenes[o.scene]}
	alarm := time.AfterFunc(2*time.Minute, func() { panic(fmt.Sprintf("virtual time stands still: %v", o)) })
	defer alarm.Stop()
	cryptotest.SetGlobalRandom(t, o.seed)
	synctest.Test(t, func(t *testing.T) { w.run(t) })
	return w
}

// run lets the owners live, first with faults and then without, and looks at what they leave.
func (w *world) run(t *testing.T) {
	net, err := sim.New(sim.Options{Seed: w.options.seed, Faults: simFaults[w.options.faults], Names: simNames, Executed: w.executed})
	if err != nil {
		t.Fatal(err)
	}
	w.net = net
	w.judge = newJudge(w)
	for i := range simClients {
		w.connect(t, i)
	}
	for w.scene.prepare != nil && w.scene.prepare(w.clients[0]) != nil {
		time.Sleep(time.Second)
	}
	owners := w.owners()
	each(owners, (*owner).live)
	time.AfterFunc(time.Second, net.Heal)
	time.Sleep(w.scene.calm)
	each(owners, (*owner).last)
	w.clean()
}

func (w *world) owners() []*owner {
	all := make([]*owner, simClients*simOwners)
	for i := range all {
		all[i] = &owner{w: w, client: w.clients[i/simOwners], name: fmt.Sprint("w", i), rand: rand.New(rand.NewPCG(w.options.seed, uint64(i+1)))}
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

// connect makes a client.
func (w *world) connect(t *testing.T, i int) {
	rdb := redis.NewClient(&redis.Options{
		Addr: "127.0.0.1:6379", Dialer: w.net.Dialer(i), Protocol: 2, DisableIdentity: true, PoolSize: 64, MaxRetries: -1,
		ContextTimeoutEnabled:    w.options.ctx == "on",
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	pause := 40*time.Millisecond + time.Duration(i)*time.Microsecond
	c, err := redisson.New(rdb, redisson.WatchdogTimeout(simWatchdog), redisson.Timeout(simTimeout),
		redisson.FairLockWaitTimeout(simFairWait), redisson.SpinBackoff(pause, pause))
	if err != nil {
		t.Fatal(err)
	}
	w.clients, w.rdbs = append(w.clients, c), append(w.rdbs, rdb)
}

// clean waits until all leases are over, and finds what nobody needs any more.
func (w *world) clean() {
	time.Sleep(simLongest + 10*time.Second)
	if left := w.net.Subscriptions(); len(left) > 0 {
		w.judge.accuse("left: subscriptions %q", left)
	}
	for _, key := range w.net.Server().Keys() {
		if !w.scene.stays(w, key) {
			w.judge.accuse("left: key %s", key)
		}
	}
	if w.scene.final != nil {
		if wrong := w.scene.final(w); wrong != "" {
			w.judge.accuse("left: %s", wrong)
		}
	}
	for i, c := range w.clients {
		_ = c.Close()
		_ = w.rdbs[i].Close()
	}
	w.net.Close()
	time.Sleep(10 * time.Second) // what goes on after Close is bounded by the client's timeout
	synctest.Wait()
	if left := goroutines(); left != "" {
		w.judge.accuse("left: goroutines\n%s", left)
	}
}

// bubble finds in a stack trace the bubble that a goroutine is in.
var bubble = regexp.MustCompile(`synctest bubble \d+`)

// goroutines returns the stacks of all goroutines in the bubble but two: the caller, and the test that made the bubble.
func goroutines() string {
	buf := make([]byte, 1<<20)
	stacks := strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n")
	mine := bubble.FindString(stacks[0])
	var left []string
	for _, s := range stacks[1:] {
		if bubble.FindString(s) == mine && !strings.Contains(s, "synctest.Run(") && !strings.Contains(s, "synctest.testing") {
			left = append(left, s)
		}
	}
	return strings.Join(left, "\n\n")
}

// simNames tells apart the ids of holders, and names scripts by their files.
var simNames = sim.Names{ID: regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f-]{27}(:[0-9]+)?`), Script: scriptNamer()}

// scriptNamer returns a function that finds the file of a script by its end: it may have a prelude.
func scriptNamer() func(text string) string {
	texts := map[string]string{}
	for _, pattern := range []string{"*.lua", "lua/*.lua"} {
		files, _ := filepath.Glob(pattern)
		for _, file := range files {
			if text, err := os.ReadFile(file); err == nil {
				texts[strings.TrimSuffix(filepath.Base(file), ".lua")] = string(text)
			}
		}
	}
	return func(text string) (found string) {
		for name, end := range texts {
			if strings.HasSuffix(text, end) && len(end) > len(texts[found]) {
				found = name
			}
		}
		return found
	}
}
