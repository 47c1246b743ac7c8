package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/latchkey-go/latchkey/faults/board"
	"github.com/latchkey-go/latchkey/faults/clock"
	"github.com/latchkey-go/latchkey/faults/history"
	"github.com/latchkey-go/latchkey/faults/server"
	"github.com/latchkey-go/latchkey/faults/wire"
	"github.com/latchkey-go/latchkey/faults/worker"
	"github.com/redis/go-redis/v9"
)

// Times of all worlds. A lease is long for what the work takes, so that a busy machine does not look like a stopped process,
// and short for those who wait until one is over.
const (
	watchdog    = 2 * time.Second
	timeout     = time.Second
	fairWait    = time.Second
	longest     = watchdog * 7 / 4 // of all leases
	callers     = 4                // of a worker
	workers     = 4                // of a world
	liveTimeout = 20 * time.Second // of all waits together after a heal
)

// world is servers, workers, and what lies between them.
type world struct {
	plan  plan
	dir   string
	log   *history.Log
	rng   *rand.Rand
	board *board.Board

	servers []*server.Server
	// sentinels watch over the servers, and endpoint is how workers that get addresses find these.
	sentinels []*server.Server
	endpoint  *worker.Endpoint
	wires     []*wire.Proxy
	ways      []*way
	places    int
	round     int
	faults    int
	clock     *clock.Clock // of the servers, where it can be set
	say       func(string, ...any)
}

// way is a place for a worker: its links to all servers, and the process that is there now.
type way struct {
	*process
	command []string // nil: this program
	links   []*link
}

// plan is what a world is made of.
type plan struct {
	name    string
	servers int
	config  server.Config
	kinds   []kind
	// mixes are the kinds of locks that are played together; a round has one of them.
	mixes [][]string
	// arrange makes the servers one, such as a cluster.
	arrange func(ctx context.Context, w *world) error
	// clock has the servers go by a clock that can be set.
	clock bool
	// java is how many of the workers are Redisson's.
	java int
	// sets has a store for the lock-set workload.
	sets bool
	// broken workers enter without a lock at times, which a test of the program wants to see found.
	broken bool
}

// build starts everything.
func build(ctx context.Context, p plan, dir string, seed uint64, say func(string, ...any)) (w *world, err error) {
	w = &world{plan: p, dir: filepath.Join(dir, p.name), rng: rand.New(rand.NewPCG(seed, hash(p.name))), say: say}
	defer func() {
		if err != nil {
			w.stop()
		}
	}()
	if w.log, err = newLog(w.dir); err != nil {
		return w, err
	}
	if w.board, err = board.Open(w.boardFile()); err != nil {
		return w, err
	}
	if p.clock {
		if w.clock, err = clock.New(w.dir); err != nil {
			return w, err
		}
	}
	for i := range max(1, p.servers) {
		c := p.config
		c.Name, c.Dir = "s"+strconv.Itoa(i), filepath.Join(w.dir, "s"+strconv.Itoa(i))
		if p.clock {
			c.Env = w.clock.Env()
		}
		s, err := server.Start(ctx, c)
		if err != nil {
			return w, err
		}
		w.servers = append(w.servers, s)
	}
	if err := w.connect(ctx); err != nil {
		return w, err
	}
	for i := range workers {
		v := &way{}
		if i < p.java {
			if v.command, err = javaCommand(ctx); err != nil {
				return w, err
			}
		}
		for _, x := range w.wires {
			l, err := openLink(fmt.Sprintf("%s-%d", p.name, i), x.Addr)
			if err != nil {
				return w, err
			}
			v.links = append(v.links, l)
		}
		w.ways = append(w.ways, v)
		if err := w.hire(v, 0); err != nil {
			return w, err
		}
	}
	return w, nil
}

// connect lays a proxy in front of each server, and makes the servers one if the plan says so.
func (w *world) connect(ctx context.Context) error {
	for _, s := range w.servers {
		x, err := wire.Listen(s.Addr)
		if err != nil {
			return err
		}
		w.wires = append(w.wires, x)
	}
	if w.plan.arrange != nil {
		return w.plan.arrange(ctx, w)
	}
	return nil
}

func (w *world) boardFile() string { return filepath.Join(w.dir, "board") }

// hire starts a worker, also in the place of one that is gone.
func (w *world) hire(v *way, pool int) (err error) {
	s := worker.Setup{Name: "w" + strconv.Itoa(w.places), Dir: filepath.Join(w.dir, "log"), Board: w.boardFile(), Place: w.places % board.Places, Watchdog: watchdog,
		Timeout: timeout, FairWait: fairWait, Pool: pool, Seed: w.rng.Uint64() >> 8, Broken: w.plan.broken}
	for i, l := range v.links {
		s.Servers = append(s.Servers, worker.Endpoint{Name: w.servers[i].Name, URL: "redis://" + server.User + ":" + server.Password + "@" + l.addr()})
	}
	if w.endpoint != nil {
		e := *w.endpoint
		e.Via = map[string]string{}
		for i, l := range v.links {
			e.Via[w.servers[i].Addr], e.Via[w.servers[i].Spare] = l.addr(), l.addr()
		}
		s.Servers = []worker.Endpoint{e}
	}
	if w.plan.sets {
		s.Store = w.storeURL()
	}
	place := &w.board[s.Place]
	place.Inside.Store(0)
	place.Waiting.Store(0)
	place.Adding.Store(0)
	w.places++
	v.process, err = startWorker(s, v.command)
	return err
}

// inside returns how many sections are open at a worker now, and waiting how many of its calls wait.
func (w *world) inside(v *way) int64  { return w.board[v.Place].Inside.Load() }
func (w *world) waiting(v *way) int64 { return w.board[v.Place].Waiting.Load() }

// everywhere gives an order to all workers.
func (w *world) everywhere(o worker.Order) (err error) {
	for _, v := range w.ways {
		err = errors.Join(err, v.order(o))
	}
	return err
}

// play plays a round: programs, a fault while they run, and then everybody must get in.
func (w *world) play(ctx context.Context, k kind) error {
	w.round++
	s := &stage{world: w, kind: k, order: worker.Order{Do: "round", Round: w.round, Callers: callers, Mix: k.mix, Keys: cmp.Or(k.keys, 2), Limit: 2, Differ: slices.Contains(k.mix, "limit")}}
	if mixes := w.mixes(k); s.order.Mix == nil {
		s.order.Mix = mixes[w.rng.IntN(len(mixes))]
	}
	if synchronized(s.order.Mix) {
		s.order.Keys = 1 // who plays with latches and rates does not contend meanwhile
	}
	if err := s.objects(ctx); err != nil {
		return err
	}
	if err := w.everywhere(s.order); err != nil {
		return err
	}
	start := time.Now()
	sleep(ctx, time.Duration(150+w.rng.IntN(150))*time.Millisecond)
	if err := s.run(ctx); err != nil {
		return fmt.Errorf("%s: %s: %w", w.plan.name, k.name, err)
	}
	sleep(ctx, timeout+100*time.Millisecond) // by then, the last call has failed that met the fault
	w.log.Note(history.Event{Op: history.Heal})
	healed := time.Now()
	if err := w.everywhere(worker.Order{Do: "heal", Round: w.round}); err != nil {
		return err
	}
	err := w.awaitAll(ctx, "heal")
	err = errors.Join(err, s.clear(ctx), s.finals(ctx))
	w.say("%-9s %-28s %5.1fs, healed for %.1fs, %s", w.plan.name, k.name, time.Since(start).Seconds(), time.Since(healed).Seconds(), s.order.Mix)
	return err
}

// mixes are those that a kind of fault allows: where workers are killed, or data is lost, nobody gives back what has no lease.
func (w *world) mixes(k kind) (some [][]string) {
	for _, mix := range w.plan.mixes {
		if !slices.Contains(mix, k.without) && (!k.kills && !k.lost || !synchronized(mix)) {
			some = append(some, mix)
		}
	}
	return some
}

// end has the workers close their clients, and looks for what is left over.
func (w *world) end(ctx context.Context) error {
	err := w.everywhere(worker.Order{Do: "end"})
	return errors.Join(err, w.awaitAll(ctx, "end"), w.leftovers(ctx))
}

// awaitAll waits for the replies of all workers.
func (w *world) awaitAll(ctx context.Context, do string) (err error) {
	ctx, cancel := context.WithTimeout(ctx, liveTimeout)
	defer cancel()
	for _, v := range w.ways {
		err = errors.Join(err, v.await(ctx, do))
	}
	return err
}

// leftoverTimeout is how long keys may stay: the longest lease, or as long as late copies of requests may arrive.
const leftoverTimeout = 12 * time.Second

// leftovers notes what stays in Redis when all locks are released or over. Counters of fencing tokens stay for ever.
func (w *world) leftovers(ctx context.Context) error {
	for _, s := range w.servers {
		for deadline := time.Now().Add(leftoverTimeout); ; sleep(ctx, 100*time.Millisecond) {
			keys, channels, err := left(ctx, s.Admin)
			if err != nil {
				return err
			}
			if len(keys)+len(channels) == 0 && w.pending() == 0 {
				break
			}
			if time.Now().Before(deadline) && ctx.Err() == nil {
				continue
			}
			for _, k := range keys {
				w.log.Note(history.Event{Op: history.Leftover, What: "key " + k, N: 1, Servers: []string{s.Name}})
			}
			for _, c := range channels {
				w.log.Note(history.Event{Op: history.Leftover, What: "subscription " + c, N: 1, Servers: []string{s.Name}})
			}
			break
		}
	}
	return nil
}

func left(ctx context.Context, rdb *redis.Client) (keys, channels []string, err error) {
	if keys, err = rdb.Keys(ctx, "*").Result(); err != nil {
		return nil, nil, err
	}
	keys = slices.DeleteFunc(keys, stays)
	channels, err = rdb.PubSubChannels(ctx, "*").Result()
	sharded, err2 := rdb.PubSubShardChannels(ctx, "*").Result()
	channels = slices.DeleteFunc(append(channels, sharded...), func(c string) bool { return c == "__sentinel__:hello" })
	return keys, channels, errors.Join(err, err2)
}

// pending returns how many requests are still late.
func (w *world) pending() (n int) {
	for _, x := range w.wires {
		n += x.Pending()
	}
	return n
}

// stop ends all processes and proxies.
func (w *world) stop() {
	for _, v := range w.ways {
		if v.process != nil {
			v.kill()
		}
		for _, l := range v.links {
			l.cut()
		}
	}
	for _, x := range w.wires {
		x.Close()
	}
	for _, s := range append(w.sentinels, w.servers...) {
		s.Close()
	}
	if w.clock != nil {
		_ = w.clock.Close()
	}
	if w.log != nil {
		_ = w.log.Close()
	}
}
