package redisson_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/redis/go-redis/v9"
)

// realTimes are those of a world on a real server. Leases are not too short for a busy machine.
var realTimes = simTimes{
	watchdog: 900 * time.Millisecond, timeout: 300 * time.Millisecond, fairWait: 2 * time.Second,
	least: 300 * time.Millisecond, most: 3 * time.Second, calm: 4 * time.Second, grace: 200 * time.Millisecond, scale: 4,
}

// TestSimOnServer plays some worlds in real time: miniredis is not Redis. What owners do is what they do in the simulation of
// the same seed; the faults are those of a proxy. With the option real it plays what the options say.
func TestSimOnServer(t *testing.T) {
	text, given := os.LookupEnv(simVariable)
	o, err := parseSimOptions(text)
	if err != nil {
		t.Fatal(err)
	}
	var worlds []simOptions
	if !given {
		for _, scene := range []string{"plain", "fair", "write", "permit", "levels"} {
			worlds = append(worlds, simOptions{seed: 1, scene: scene, rounds: 3, faults: "all", bounds: "loose"}.one(0))
		}
	}
	for i := range o.seeds {
		if o.realtime {
			worlds = append(worlds, o.one(i))
		}
	}
	for _, one := range worlds {
		t.Run(one.String(), func(t *testing.T) {
			t.Parallel()
			playReally(t, one)
		})
	}
}

// playReally plays a world on a server of its own and reports what is found.
func playReally(t *testing.T, o simOptions) *world {
	w := &world{options: o, scene: simScenes[o.scene], times: realTimes}
	net := startRealStage(t, o.seed)
	w.net = net
	w.judge = newJudge(w)
	for i, p := range net.proxies {
		w.connect(t, i, func(o *redis.Options) { o.Addr = p.Addr })
	}
	w.play()
	w.close()
	w.judge.mu.Lock()
	defer w.judge.mu.Unlock()
	for _, v := range w.judge.violations {
		t.Errorf("%s\nin %s=real,%v\n%s", v, simVariable, o, net.trace())
	}
	return w
}

// realStage is a redis-server with a proxy before it for each client.
type realStage struct {
	start   time.Time
	admin   *redis.Client
	proxies []*redistest.Proxy
	healed  chan struct{}
	calm    sync.WaitGroup // for those who make trouble

	mu      sync.Mutex
	lines   []string
	reached map[string]int
}

func startRealStage(t *testing.T, seed uint64) *realStage {
	server := redistest.Start(t)
	s := &realStage{start: time.Now(), admin: server.Client(t), healed: make(chan struct{}), reached: map[string]int{}}
	for i := range simClients {
		p := server.Front(t)
		s.proxies = append(s.proxies, p)
		s.calm.Go(func() { s.trouble(p, rand.New(rand.NewPCG(seed, uint64(i+100)))) })
	}
	return s
}

// trouble breaks what passes through a proxy, until the stage is healed.
func (s *realStage) trouble(p *redistest.Proxy, r *rand.Rand) {
	for {
		select {
		case <-s.healed:
			p.CutReply("", 0)
			return
		case <-time.After(time.Duration(r.Int64N(int64(400 * time.Millisecond)))):
		}
		switch r.IntN(7) {
		case 0:
			s.Reach("subscription cut")
			p.Drop()
		case 1:
			s.Reach("answer held back")
			p.Freeze()
			time.Sleep(time.Duration(r.Int64N(int64(time.Second))))
			p.Thaw()
		case 2:
			late := p.KeepBack("evalsha", r.IntN(3))
			time.Sleep(time.Duration(r.Int64N(int64(time.Second))))
			if late.TryDeliver() == nil { // or it strikes later, and does not arrive
				s.Reach("request late")
			}
		default:
			s.Reach("answer lost")
			p.CutReply("evalsha", 1+r.IntN(3))
		}
	}
}

// Note implements [stage].
func (s *realStage) Note(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, fmt.Sprintf("%10v ", s.Since().Round(time.Microsecond))+fmt.Sprintf(format, args...))
}

// trace returns the lines before a violation.
func (s *realStage) trace() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	end := 1 + slices.IndexFunc(s.lines, func(line string) bool { return strings.Contains(line, "VIOLATION") })
	return strings.Join(s.lines[max(0, end-300):end], "\n")
}

// Reach implements [stage].
func (s *realStage) Reach(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reached[what]++
}

// Since implements [stage].
func (s *realStage) Since() time.Duration { return time.Since(s.start) }

// Heal implements [stage].
func (s *realStage) Heal() {
	close(s.healed)
	s.calm.Wait()
}

// Keys implements [stage].
func (s *realStage) Keys() []string { return s.admin.Keys(context.Background(), "*").Val() }

// TTL implements [stage].
func (s *realStage) TTL(key string) time.Duration {
	return s.admin.PTTL(context.Background(), key).Val()
}

// Subscriptions implements [stage].
func (s *realStage) Subscriptions() []string {
	return s.admin.PubSubChannels(context.Background(), "*").Val()
}

// watch calls step again and again, with how long the process has run since the last time and how long it stood still,
// until step returns false or stop is closed.
func watch(stop <-chan struct{}, step func(ran, stalled time.Duration) bool) {
	const tick, late = 5 * time.Millisecond, 20 * time.Millisecond
	for {
		start := time.Now()
		select {
		case <-stop:
			return
		case <-time.After(tick):
		}
		d := time.Since(start)
		stalled := max(0, d-tick-late)
		if !step(d-stalled, stalled) {
			return
		}
	}
}
