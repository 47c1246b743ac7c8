package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Workloads that run once, or not in each round.

// ownJob has one worker of Latchkey's do a job that other peers have no part in, and notes what it measures.
func ownJob(do, metric string, divisor float64) func(context.Context, *bench) error {
	return func(ctx context.Context, b *bench) error {
		j := job{Do: do, Millis: int(b.slice.Milliseconds())}
		if b.server != nil {
			j.Addr = b.server.addr
		}
		r, err := b.do(ctx, we, 1, j)
		if err != nil {
			return err
		}
		for _, m := range r.Named {
			b.note(metric, m.Name, m.Value/divisor)
		}
		return nil
	}
}

// nested counts what a guard costs under a guard that holds the same key.
func nested(ctx context.Context, b *bench) error {
	const calls = 200
	var sent [2]int64
	for i, inside := range []bool{false, true} {
		for _, n := range []int{1, calls} { // the first one opens connections
			b.counter.Reset()
			if _, err := b.do(ctx, we, 1, job{Do: "reentry", Addr: b.counter.Addr, Count: n, OneKey: inside}); err != nil {
				return err
			}
		}
		sent[i] = total(b.counter.Counts())
	}
	b.note("reentry_commands", we, float64(sent[1]-sent[0])/calls)
	return nil
}

// freeze stops the server for a moment under 64 callers on one key, and counts those who never come back.
func freeze(ctx context.Context, b *bench) error {
	const before, frozen, after = 300 * time.Millisecond, 100 * time.Millisecond, 2 * time.Second
	for _, name := range b.all(contestant.canWait) {
		if _, err := b.do(ctx, name, 1, job{Do: "load", Addr: b.server.addr, OneKey: true, Callers: 64, Away: 2, Millis: 50}); err != nil {
			continue // which has been said
		}
		thawed := make(chan error, 1)
		go func() {
			sleep(ctx, before)
			thawed <- b.server.freeze(ctx, frozen)
		}()
		j := job{Do: "load", Addr: b.server.addr, OneKey: true, Callers: 64, Away: 2,
			Millis: int((before + frozen + after).Milliseconds()), Since: int((before + frozen).Milliseconds())}
		r, err := b.do(ctx, name, 1, j)
		if err := <-thawed; err != nil {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err == nil {
			b.note("freeze_lost", name, float64(r.Starved))
			b.note("freeze_longest_ms", name, float64(r.Longest)/1e6)
			b.noteStuck(name, r.Starved)
		}
	}
	return nil
}

// heldCounts are how many locks are held at once.
var heldCounts = []int{1_000, 10_000, 100_000}

// heldMetrics are those of held locks that end so.
func heldMetrics(counts []int, ends ...string) []string {
	var all []string
	for _, n := range counts {
		for _, end := range ends {
			all = append(all, fmt.Sprintf("held_%d_%s", n, end))
		}
	}
	return all
}

// renewal is how long the renewals of held locks are watched: one period of Latchkey and of Redisson, four of rueidislock.
const renewal = 10 * time.Second

// heldMemory has all peers that renew hold some locks at the same time, and notes what that takes of their memory. A client that opens
// one more connection meanwhile has 64 kB more, which is as much as 100 of its locks. That is up to chance, so it is measured in several
// rounds; among 100,000 locks it does not matter.
func heldMemory(ctx context.Context, b *bench) error {
	for _, n := range heldCounts[:2] {
		if err := b.holdAtOnce(ctx, n, b.renewing(), false); err != nil {
			return err
		}
	}
	return nil
}

// heldLocks has each peer that renews hold many locks, and watches the renewals. With few locks that is so little work that all peers do it
// at the same time.
func heldLocks(ctx context.Context, b *bench) error {
	for _, n := range heldCounts {
		teams := [][]string{b.renewing()}
		if n > heldCounts[0] {
			teams = slices.Collect(slices.Chunk(teams[0], 1))
		}
		for _, team := range teams {
			if err := b.holdAtOnce(ctx, n, team, true); err != nil {
				return err
			}
		}
	}
	return nil
}

// renewing returns the peers that renew what they hold.
func (b *bench) renewing() []string {
	return b.all(func(c contestant) bool { return c.renews && c.name != ourUser && c.name != "rueidislock-3" })
}

// holdAtOnce has peers hold n locks each, and notes how much of their memory that takes or, if watched is set, what the
// renewals cost. It notes both for very many locks.
func (b *bench) holdAtOnce(ctx context.Context, n int, peers []string, watched bool) error {
	answers := make([]heldAnswer, len(peers))
	var all sync.WaitGroup
	for i, name := range peers {
		all.Go(func() { answers[i] = b.hold(ctx, name, n, watched) })
	}
	all.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	for i, name := range peers {
		if err := answers[i].err; err != nil {
			b.say("%s, %d held locks: %v", name, n, err)
			b.lack(fmt.Sprintf("held_%d", n), name, err)
		}
		for end, v := range answers[i].values {
			b.note(fmt.Sprintf("held_%d_%s", n, end), name, v)
		}
	}
	return nil
}

// heldAnswer is what holding so many locks has cost, by the ends of the metrics' names.
type heldAnswer struct {
	values map[string]float64
	err    error
}

// hold has a peer hold n locks, in a process of its own with a server of its own.
func (b *bench) hold(ctx context.Context, name string, n int, watched bool) (a heldAnswer) {
	command, err := b.command(ctx, name)
	if err != nil {
		return heldAnswer{err: err}
	}
	s, err := startServer(ctx)
	if err != nil {
		return heldAnswer{err: err}
	}
	defer s.stop()
	p, err := startProcess(ctx, command)
	if err != nil {
		return heldAnswer{err: err}
	}
	defer p.stop()
	r, err := p.do(ctx, job{Do: "hold", Addr: s.addr, Count: n, Key: "held"}, patience+renewal)
	if err != nil {
		return heldAnswer{err: err}
	}
	a.values = map[string]float64{}
	if !watched || n > heldCounts[1] {
		a.values["bytes"], a.values["goroutines"] = r.Bytes, r.Routine
	}
	if watched {
		a.err = s.watch(ctx, n, a.values)
	}
	return a
}

// watch adds what the renewal of n locks costs the server.
func (s *server) watch(ctx context.Context, n int, values map[string]float64) error {
	before, err := s.traffic(ctx)
	if err != nil {
		return err
	}
	start := time.Now()
	sleep(ctx, renewal)
	took := time.Since(start)
	after, err := s.traffic(ctx)
	if err != nil {
		return err
	}
	if size, err := s.admin.DBSize(ctx).Result(); err != nil || size < int64(n) {
		return errors.Join(fmt.Errorf("%d of %d locks are left after %v", size, n, took), err)
	}
	values["scripts"] = float64(after.scripts-before.scripts) / took.Seconds()
	values["traffic"] = float64(after.bytes-before.bytes) / took.Seconds() / 1e3
	values["share"] = (after.busy - before.busy).Seconds() / took.Seconds()
	return nil
}

// traffic says what has reached the server.
type traffic struct {
	scripts int64
	bytes   int64
	busy    time.Duration // with scripts
}

func (s *server) traffic(ctx context.Context) (t traffic, err error) {
	done, err := s.calls(ctx)
	if err != nil {
		return t, err
	}
	stats, err := s.info(ctx, "stats")
	if err != nil {
		return t, err
	}
	_, err = fmt.Sscan(stats["total_net_input_bytes"], &t.bytes)
	t.scripts, t.busy = done.executed["evalsha"]+done.executed["eval"], done.scripts
	return t, err
}
