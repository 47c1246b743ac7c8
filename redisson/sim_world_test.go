package redisson_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
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
)

// world is a simulation: clients with owners, who take locks on one server.
type world struct {
	options simOptions
	net     *sim.Network
	judge   *judge
	clients []*redisson.Client

	mu       sync.Mutex
	sections int
}

// simulate runs a world and returns it when all is over.
func simulate(t *testing.T, o simOptions) *world {
	w := &world{options: o}
	alarm := time.AfterFunc(time.Minute, func() { panic(fmt.Sprintf("virtual time stands still: %v", o)) })
	defer alarm.Stop()
	cryptotest.SetGlobalRandom(t, o.seed)
	synctest.Test(t, func(t *testing.T) { w.run(t) })
	return w
}

func (w *world) run(t *testing.T) {
	net, err := sim.New(sim.Options{Seed: w.options.seed, Faults: simFaults(t, w.options.faults), Names: simNames(),
		Executed: func(sim.Execution) { w.judge.look() }})
	if err != nil {
		t.Fatal(err)
	}
	w.net, w.judge = net, newJudge(net)
	defer net.Close()
	for i := range simClients {
		defer w.connect(t, i)()
	}
	if w.options.kinds == "permits" {
		_, _ = w.clients[0].PermitExpirableSemaphore("L").TrySetPermits(t.Context(), simLimit)
	}
	var owners sync.WaitGroup
	for i := range simClients * simOwners {
		o := &owner{w: w, client: w.clients[i/simOwners], name: fmt.Sprint("w", i), rand: rand.New(rand.NewPCG(w.options.seed, uint64(i)))}
		owners.Go(o.live)
	}
	owners.Wait()
	time.Sleep(10 * time.Second)
	if w.options.trace {
		_, _ = net.Trace().WriteTo(os.Stderr)
	}
}

// connect makes a client, and returns what closes it.
func (w *world) connect(t *testing.T, i int) (closeClient func()) {
	rdb := redis.NewClient(&redis.Options{
		Addr: "127.0.0.1:6379", Dialer: w.net.Dialer(i), Protocol: 2, DisableIdentity: true, PoolSize: 64, MaxRetries: -1,
		ContextTimeoutEnabled:    w.options.seed%2 == 0,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	c, err := redisson.New(rdb, redisson.WatchdogTimeout(simWatchdog), redisson.Timeout(simTimeout), redisson.FairLockWaitTimeout(10*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	w.clients = append(w.clients, c)
	return func() {
		_ = c.Close()
		_ = rdb.Close()
	}
}

// holderID finds the ids of clients and holders.
var holderID = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f-]{27}(:[0-9]+)?`)

// simNames names scripts by their files.
func simNames() sim.Names {
	texts := map[string]string{}
	for _, pattern := range []string{"*.lua", "lua/*.lua"} {
		files, _ := filepath.Glob(pattern)
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				panic(err)
			}
			texts[strings.TrimSuffix(filepath.Base(file), ".lua")] = string(text)
		}
	}
	script := func(text string) (found string) {
		for name, end := range texts {
			if strings.HasSuffix(text, end) && len(end) > len(texts[found]) {
				found = name
			}
		}
		return found
	}
	return sim.Names{ID: holderID, Script: script}
}

// counted counts a section.
func (w *world) counted() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sections++
}
