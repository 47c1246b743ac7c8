package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"
)

// workload is one kind of work that all peers do that can.
type workload struct {
	name  string
	about string
	feeds []string // the metrics that it notes; figures are made of them
	most  int      // rounds; 0 for all
	local bool     // needs no Redis
	run   func(context.Context, *bench) error
}

// workloads are all of them, in the order of a round.
var workloads = []workload{
	{name: "pairs", about: "one caller locks and unlocks its own key", feeds: pairMetrics("pair"), run: pairs("pair", direct)},
	{name: "pairs over a link", about: "the same, each answer 0.5 ms later", feeds: pairMetrics("link_pair"), run: pairs("link_pair", slow)},
	{name: "8 own keys", about: "8 callers, each with its own key", feeds: []string{"own_keys_8_rate"}, run: ownKeys(8)},
	{name: "64 own keys", about: "64 callers, each with its own key", feeds: []string{"own_keys_64_rate"}, run: ownKeys(64)},
	{name: "512 own keys", about: "512 callers, each with its own key", feeds: []string{"own_keys_512_rate"}, run: ownKeys(512)},
	{name: "one key, no pause", about: "64 callers on one key, each back at once", feeds: contentionMetrics("busy_key"), run: oneKey("busy_key", 1, 64, 0, direct)},
	{name: "one key", about: "64 callers on one key, each away for 2 ms after its release", feeds: contentionMetrics("one_key"), run: oneKey("one_key", 1, 64, 2, direct)},
	{name: "one key over a link", about: "the same, each answer of Redis 0.5 ms later", feeds: contentionMetrics("link_key"), run: oneKey("link_key", 1, 64, 2, slow)},
	{name: "processes", about: "4 processes with 16 callers each on one key, each away for 2 ms after its release", feeds: contentionMetrics("processes"), run: oneKey("processes", 4, 16, 2, direct)},
	{name: "turns", about: "two processes take strict turns: each release finds the other one waiting", feeds: []string{"turns_gap_us", "stuck"}, run: strictTurns},
	{name: "herd", about: "4 clients, and 192, with one caller each on one key, which each has for 1 ms and then leaves alone for 2 ms", feeds: herdMetrics, most: 2, run: herd},
	{name: "http", about: "a POST to a handler that does nothing, over a real connection", feeds: []string{"http_us"}, run: ownJob("http", "http_us", 1e3)},
	{name: "grpc", about: "a unary call that does nothing, over a real connection", feeds: []string{"grpc_us"}, run: ownJob("grpc", "grpc_us", 1e3)},
	{name: "keys", about: "the key of a request from two of its fields", feeds: []string{"key_ns"}, local: true, run: ownJob("keys", "key_ns", 1)},
	{name: "guard", about: "guards around nothing, with memlock", feeds: []string{"guard_ns"}, local: true, run: ownJob("guard", "guard_ns", 1)},
	{name: "freeze", about: "64 callers on one key, and a server that is stopped for 100 ms", feeds: []string{"freeze_lost", "freeze_longest_ms", "stuck"}, most: 2, run: freeze},
	{name: "reentry", about: "a guard under a guard that holds the same key", feeds: []string{"reentry_commands"}, most: 1, run: nested},
	{name: "memory of held locks", about: "1,000 and 10,000 locks are held", feeds: heldMetrics(heldCounts[:2], "bytes", "goroutines"), most: 5, run: heldMemory},
	{name: "held", about: "1,000, 10,000 and 100,000 locks are held for 10 s", most: 1, run: heldLocks,
		feeds: append(heldMetrics(heldCounts[2:], "bytes", "goroutines"), heldMetrics(heldCounts, "scripts", "traffic", "share")...)},
	{name: "commands of pairs", about: "what one caller sends through a proxy that counts, and what Redis executes, scripts included", feeds: commandMetrics("pair"), most: 1,
		run: commands("pair", 1, job{Do: "load", Callers: 1}, alone)},
	{name: "commands on one key", about: "the same of 64 callers on one key", feeds: commandMetrics("one_key"), most: 1,
		run: commands("one_key", 1, job{Do: "load", OneKey: true, Callers: 64, Away: 2}, contestant.canWait)},
	{name: "commands of processes", about: "the same of 4 processes with 16 callers each", feeds: commandMetrics("processes"), most: 1,
		run: commands("processes", 4, job{Do: "load", OneKey: true, Callers: 16, Away: 2}, canTeam)},
	{name: "commands of turns", about: "the same of two processes in strict turns", feeds: commandMetrics("turns"), most: 1, run: commands("turns", 2, job{Do: "turns"}, canTeam)},
}

// selected returns the workloads whose name matches, or that feed a figure whose id does.
func selected(only *regexp.Regexp) []workload {
	var chosen []workload
	for _, w := range workloads {
		fits := only.MatchString(w.name)
		for _, m := range w.feeds {
			fits = fits || only.MatchString(m)
		}
		for _, f := range plan {
			fits = fits || feeds(w, f.metric) && only.MatchString(f.id)
		}
		if fits {
			chosen = append(chosen, w)
		}
	}
	return chosen
}

func feeds(w workload, metric string) bool {
	return slices.Contains(w.feeds, metric)
}

// where returns the address of Redis for a workload.
type where func(*bench) string

func direct(b *bench) string { return b.server.addr }
func slow(b *bench) string   { return b.link.Addr() }

// passes is how often the peers of a round follow each other in short workloads: a slow spell of the machine then falls on
// all of them.
const passes = 5

// warmUp is how long each job runs before its measured part.
const warmUp = 25 * time.Millisecond

// sliced runs a job of each peer in turn for d, in so many passes, and hands what they did to note.
func (b *bench) sliced(ctx context.Context, peers []string, processes int, j job, passes int, d time.Duration, note func(peer string, r result)) error {
	total := map[string]result{}
	for range passes {
		for _, name := range peers {
			r, err := b.warm(ctx, name, processes, j, d)
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if err == nil {
				total[name] = total[name].merge(r, false)
			}
		}
	}
	for name, r := range total {
		note(name, r)
	}
	return nil
}

// warm does a job for a moment, and then for as long as the measurement takes.
func (b *bench) warm(ctx context.Context, name string, processes int, j job, d time.Duration) (result, error) {
	if b.broken[name] {
		return result{}, errors.New(b.failed[name])
	}
	j.Millis = int(warmUp.Milliseconds())
	if _, err := b.do(ctx, name, processes, j); err != nil {
		return result{}, err
	}
	j.Millis = int(d.Milliseconds())
	return b.do(ctx, name, processes, j)
}

func pairMetrics(prefix string) []string {
	return []string{prefix + "_us", prefix + "_p50_us", prefix + "_p99_us", prefix + "_allocs"}
}

func pairs(prefix string, at where) func(context.Context, *bench) error {
	return func(ctx context.Context, b *bench) error {
		return b.sliced(ctx, b.all(alone), 1, job{Do: "load", Addr: at(b), Callers: 1}, passes, b.slice/passes, func(peer string, r result) {
			if r.Done == 0 {
				return
			}
			b.note(prefix+"_us", peer, float64(r.Nanos)/1e3/float64(r.Done))
			b.note(prefix+"_p50_us", peer, float64(r.Times[0])/1e3)
			b.note(prefix+"_p99_us", peer, float64(r.Times[1])/1e3)
			if peer != java {
				b.note(prefix+"_allocs", peer, r.Allocs)
			}
		})
	}
}

func ownKeys(callers int) func(context.Context, *bench) error {
	return func(ctx context.Context, b *bench) error {
		return b.sliced(ctx, b.all(many), 1, job{Do: "load", Addr: b.server.addr, Callers: callers}, passes, b.slice/passes, func(peer string, r result) {
			b.note(fmt.Sprintf("own_keys_%d_rate", callers), peer, r.perSecond())
		})
	}
}

func contentionMetrics(prefix string) []string {
	return []string{prefix + "_per_s", prefix + "_changes", prefix + "_gap_us", prefix + "_gap_p99_us", prefix + "_longest_ms", prefix + "_starved", "stuck"}
}

// oneKey has processes with callers each on one key. They are longer than other jobs, because whoever polls needs time to
// be served at all.
func oneKey(prefix string, processes, callers, away int, at where) func(context.Context, *bench) error {
	return func(ctx context.Context, b *bench) error {
		for _, name := range b.all(func(c contestant) bool { return c.waits && (processes == 1 || c.isGo()) }) {
			j := job{Do: "load", Addr: at(b), OneKey: true, Callers: callers, Away: away}
			r, err := b.warm(ctx, name, processes, j, 2*b.slice)
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if err == nil {
				b.noteContention(prefix, name, r)
			}
		}
		return nil
	}
}

func (b *bench) noteContention(prefix, name string, r result) {
	b.note(prefix+"_per_s", name, r.perSecond())
	b.note(prefix+"_longest_ms", name, float64(r.Longest)/1e6)
	b.note(prefix+"_starved", name, float64(r.Starved))
	b.noteStuck(name, r.Starved)
	if r.Done > 0 {
		b.note(prefix+"_changes", name, float64(r.Changes)/float64(r.Done))
	}
	if len(r.Gaps) > 0 {
		b.note(prefix+"_gap_us", name, float64(r.Gaps[0])/1e3)
		b.note(prefix+"_gap_p99_us", name, float64(r.Gaps[1])/1e3)
	}
}

var herdMetrics = []string{"herd_4_per_s", "herd_192_per_s", "herd_scale", "herd_longest", "stuck"}

// herdTime is how long a herd runs: long enough for several turns of each of 192.
const herdTime = 3 * time.Second

func herd(ctx context.Context, b *bench) error {
	for _, name := range b.all(canTeam) {
		var few float64
		for _, n := range []int{4, 192} {
			r, err := b.do(ctx, name, 1, herdOf(b.server.addr, n, 1, herdTime))
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if err != nil || r.Done == 0 {
				break
			}
			b.note(fmt.Sprintf("herd_%d_per_s", n), name, r.perSecond())
			if few == 0 {
				few = r.perSecond()
				continue
			}
			b.note("herd_scale", name, r.perSecond()/few)
			b.note("herd_longest", name, float64(r.Longest)*float64(r.Done)/float64(r.Nanos)/float64(n))
			b.noteStuck(name, r.Starved)
		}
	}
	return nil
}

// herdOf is the job of so many clients with a caller each.
func herdOf(addr string, n, hold int, d time.Duration) job {
	return job{Do: "load", Addr: addr, OneKey: true, Callers: n, Clients: n, Hold: hold, Away: 2, Millis: int(d.Milliseconds())}
}

// limited is j with a key that so many may have at once.
func limited(n int, j job) job { j.Limit = n; return j }

// noteStuck adds to the callers of a peer that were left without the lock in this round, in whatever workload.
func (b *bench) noteStuck(name string, n int64) {
	b.note("stuck", name, b.samples["stuck"][name][b.round]+float64(n))
}

// strictTurns takes twice as many passes as others, because most of a turn is the time in which the machine wakes up, of which no two
// are alike.
func strictTurns(ctx context.Context, b *bench) error {
	return b.sliced(ctx, b.all(canTeam), 2, job{Do: "turns", Addr: b.server.addr}, 2*passes, 2*b.slice/passes, func(peer string, r result) {
		b.noteStuck(peer, r.Starved)
		if len(r.Gaps) > 0 {
			b.note("turns_gap_us", peer, float64(r.Gaps[0])/1e3)
		}
	})
}
