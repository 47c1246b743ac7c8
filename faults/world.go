package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/latchkey-go/latchkey/faults/board"
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
	wires   []*wire.Proxy
	ways    []*way
	places  int
	round   int
	faults  int
	say     func(string, ...any)
	close   []func()
}

// way is a place for a worker: its links to all servers, and the process that is there now.
type way struct {
	*process
	links []*link
}

// plan is what a world is made of.
type plan struct {
	name    string
	servers int
	config  server.Config
	kinds   []kind
	// mixes are the kinds of locks that are played together; a round has one of them.
	mixes [][]string
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
	for i := range max(1, p.servers) {
		c := p.config
		c.Name, c.Dir = "s"+strconv.Itoa(i), filepath.Join(w.dir, "s"+strconv.Itoa(i))
		s, err := server.Start(ctx, c)
		if err != nil {
			return w, err
		}
		x, err := wire.Listen(s.Addr)
		if err != nil {
			return w, err
		}
		w.servers, w.wires = append(w.servers, s), append(w.wires, x)
	}
	for i := range workers {
		v := &way{}
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

func (w *world) boardFile() string { return filepath.Join(w.dir, "board") }

// hire starts a worker, also in the place of one that is gone.
func (w *world) hire(v *way, pool int) (err error) {
	s := worker.Setup{Name: "w" + strconv.Itoa(w.places), Dir: filepath.Join(w.dir, "log"), Board: w.boardFile(), Place: w.places % board.Places, Watchdog: watchdog,
		Timeout: timeout, FairWait: fairWait, Pool: pool, Seed: w.rng.Uint64() >> 8, Broken: w.plan.broken}
	for i, l := range v.links {
		s.Servers = append(s.Servers, worker.Endpoint{Name: w.servers[i].Name, URL: "redis://" + server.User + ":" + server.Password + "@" + l.addr()})
	}
	w.board[s.Place].Inside.Store(0)
	w.board[s.Place].Waiting.Store(0)
	w.places++
	v.process, err = startWorker(s)
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
	s := &stage{world: w, kind: k, order: worker.Order{Do: "round", Round: w.round, Callers: callers, Mix: k.mix, Keys: 2, Limit: 2}}
	if s.order.Mix == nil {
		s.order.Mix = w.plan.mixes[w.rng.IntN(len(w.plan.mixes))]
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
	limit := time.After(liveTimeout)
	var err error
	for _, v := range w.ways {
		err = errors.Join(err, v.await("heal", limit))
	}
	w.say("%-9s %-28s %5.1fs, healed for %.1fs, %s", w.plan.name, k.name, time.Since(start).Seconds(), time.Since(healed).Seconds(), s.order.Mix)
	return err
}

// end has the workers close their clients, and looks for what is left over.
func (w *world) end(ctx context.Context) error {
	err := w.everywhere(worker.Order{Do: "end"})
	limit := time.After(liveTimeout)
	for _, v := range w.ways {
		err = errors.Join(err, v.await("end", limit))
	}
	return errors.Join(err, w.leftovers(ctx))
}

// leftoverTimeout is how long keys may stay: the longest lease, or as long as copies of what was asked are waited for.
const leftoverTimeout = 12 * time.Second

// leftovers notes what stays in Redis when all locks are released or over. Counters of fencing tokens stay for ever.
func (w *world) leftovers(ctx context.Context) error {
	for i, s := range w.servers {
		for deadline := time.Now().Add(leftoverTimeout); ; sleep(ctx, 100*time.Millisecond) {
			keys, channels, err := left(ctx, s.Admin)
			if err != nil {
				return err
			}
			if len(keys)+len(channels) == 0 && w.wires[i].Pending() == 0 {
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
	return keys, channels, err
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
	for _, s := range w.servers {
		s.Close()
	}
	for _, f := range w.close {
		f()
	}
	if w.log != nil {
		_ = w.log.Close()
	}
}
