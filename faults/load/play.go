package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/faults/server"
	"github.com/latchkey-go/latchkey/internal/clock"
	"github.com/redis/go-redis/v9"
)

// stage is what a scenario is played on.
type stage struct {
	scenario
	redis     *redis.Client
	processes []*process
	generator *generator    // nil if the processes make the load
	sent      int           // by the generator in the last part
	took      time.Duration // the last part
	settle    time.Duration // how long a state may take to become flat
}

// settleTime is long enough for idle sessions and unused subscriptions, which are given up after some seconds.
const settleTime = 15 * time.Second

// play runs a scenario, prints its rows, and returns what was wrong.
func (s scenario) play(ctx context.Context, out io.Writer, settle time.Duration) (problems []string, err error) {
	dir, err := os.MkdirTemp("", "latchkey-load-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	srv, err := server.Start(ctx, server.Config{Name: "load", Dir: filepath.Join(dir, "redis")})
	if err != nil {
		return nil, err
	}
	defer srv.Close()
	only := *srv.Admin.Options()
	only.PoolSize = 1 // go-redis dials more than it uses, and all clients of Redis are counted
	rdb := redis.NewClient(&only)
	defer rdb.Close()
	st := &stage{scenario: s, redis: rdb, settle: settle}
	defer st.stop()
	if err := st.start(ctx, setting{Redis: srv.Addr, Board: filepath.Join(dir, "board"), Size: s.size}); err != nil {
		return nil, err
	}
	base, err := st.look(ctx, st.base())
	if err != nil {
		return nil, err
	}
	warm, before, err := st.part(ctx, s.warm, nil)
	if err != nil {
		return nil, err
	}
	row(out, s.name, "warm", before, warm, st.rateOf(before.Ops))
	end, t, err := st.part(ctx, s.run, &warm)
	if err != nil {
		return nil, err
	}
	row(out, "", "end", t, end, st.rateOf(t.Ops-before.Ops))
	closed, t, err := st.close(ctx, base)
	if err != nil {
		return nil, err
	}
	row(out, "", "closed", tally{}, closed, 0)
	problems = append(end.grown(warm), closed.left(base, s.processes)...)
	if closed.redis.clients > base.redis.clients {
		problems = append(problems, "Redis has these clients: "+rdb.ClientList(ctx).Val())
	}
	return append(problems, st.faults(out, t)...), nil
}

// start starts the processes.
func (st *stage) start(ctx context.Context, set setting) error {
	var addrs []string
	for range st.scenario.processes {
		p, err := startProcess(st.kind, set)
		if p != nil {
			st.processes = append(st.processes, p)
		}
		if err != nil {
			return err
		}
		addrs = append(addrs, p.addr)
	}
	if st.rate > 0 {
		st.generator = &generator{addrs: addrs, keys: st.size.Keys}
	}
	return ctx.Err()
}

func (st *stage) stop() {
	for _, p := range st.processes {
		p.stop()
	}
}

func (st *stage) base() (u usage) {
	for _, p := range st.processes {
		u = u.plus(p.base)
	}
	return u
}

// part plays for a while. Then it waits until the state is flat, or settled if there is nothing to compare it with.
func (st *stage) part(ctx context.Context, d time.Duration, warm *state) (now state, t tally, err error) {
	start := time.Now()
	if g := st.generator; g != nil {
		st.sent = g.run(ctx, st.rate, d)
		d = 0
	}
	_, t, err = st.all(order{Run: d})
	st.took = time.Since(start)
	for deadline := time.Now().Add(st.settle); err == nil; {
		if !clock.Sleep(ctx, time.Second) {
			return now, t, context.Cause(ctx)
		}
		var u usage
		if u, t, err = st.all(order{}); err != nil {
			return now, t, err
		}
		before := now
		if now, err = st.look(ctx, u); err != nil {
			return now, t, err
		}
		flat := warm != nil && len(now.grown(*warm)) == 0 || warm == nil && now.Goroutines == before.Goroutines && now.FDs == before.FDs
		if flat || time.Now().After(deadline) {
			break
		}
	}
	return now, t, err
}

// close closes all and waits until Redis has noticed.
func (st *stage) close(ctx context.Context, base state) (now state, t tally, err error) {
	u, t, err := st.all(order{Close: true})
	for deadline := time.Now().Add(st.settle); err == nil; {
		now, err = st.look(ctx, u)
		if len(now.left(base, st.scenario.processes)) == 0 || time.Now().After(deadline) || !clock.Sleep(ctx, 100*time.Millisecond) {
			break
		}
	}
	return now, t, err
}

// all gives an order to all processes and adds up their reports. The generator's tally is the one of the requests.
func (st *stage) all(o order) (u usage, t tally, err error) {
	reports, errs := make([]report, len(st.processes)), make([]error, len(st.processes))
	var all sync.WaitGroup
	for i, p := range st.processes {
		all.Go(func() { reports[i], errs[i] = p.obey(o) })
	}
	all.Wait()
	if st.generator != nil {
		t = st.generator.t
	}
	for i, r := range reports {
		u, t = u.plus(r.Usage), t.plus(r.Tally)
		if errs[i] != nil {
			err = errs[i]
		}
	}
	return u, t, err
}

// look adds Redis' state to what the processes have.
func (st *stage) look(ctx context.Context, u usage) (now state, err error) {
	now.usage = u
	info, err := st.redis.Info(ctx, "memory", "clients", "stats").Result()
	if err != nil {
		return now, err
	}
	for line := range strings.Lines(info) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		n, _ := strconv.ParseInt(value, 10, 64)
		switch name {
		case "used_memory":
			now.redis.memory = n
		case "connected_clients":
			now.redis.clients = n
		case "pubsub_channels":
			now.redis.channels = n
		}
	}
	now.redis.keys, err = st.redis.DBSize(ctx).Result()
	return now, err
}

// leastServed is the part of the requests that must be served. The rest may be busy: two requests for the same order wait for
// each other, and on a machine that is busy with other things a wait can come to its end.
const leastServed = 0.99

// faults says what went wrong in the sections.
func (st *stage) faults(out io.Writer, t tally) (problems []string) {
	if t.Overlaps > 0 {
		problems = append(problems, fmt.Sprintf("%d overlaps", t.Overlaps))
	}
	if t.Errors > 0 {
		problems = append(problems, fmt.Sprintf("%d errors, the first: %s", t.Errors, t.First))
	}
	if t.Ops == 0 {
		problems = append(problems, "nothing was done")
	}
	if g := st.generator; g != nil {
		rate, served := float64(st.sent)/st.took.Seconds(), float64(g.t.Ops)/float64(g.t.Ops+g.t.Busy+g.t.Errors)
		fmt.Fprintf(out, "  %.0f of %d requests/s were made, %.2f %% of all were served\n", rate, st.rate, 100*served)
		if served < leastServed {
			problems = append(problems, fmt.Sprintf("%.2f %% of the requests were served", 100*served))
		}
	}
	return problems
}

func header(out io.Writer) {
	fmt.Fprintf(out, "%-36s %-6s %9s %8s %8s %8s %8s %6s %4s %6s %6s %6s %5s %8s %7s %7s\n", "load", "when", "ops", "ops/s", "p50", "p99",
		"max", "busy", "err", "heap", "RSS", "gorout", "fds", "redis", "clients", "keys")
}

// rateOf returns how much n in the last part is in a second.
func (st *stage) rateOf(n int64) float64 { return float64(n) / st.took.Seconds() }

// row prints what was done so far, and the state after that.
func row(out io.Writer, name, when string, t tally, s state, rate float64) {
	mb := func(n int64) string { return fmt.Sprintf("%.1f", float64(n)/(1<<20)) }
	ms := func(d time.Duration) string { return fmt.Sprintf("%.1fms", float64(d)/float64(time.Millisecond)) }
	fmt.Fprintf(out, "%-36s %-6s %9d %8.0f %8s %8s %8s %6d %4d %6s %6s %6d %5d %8s %7d %7d\n", name, when, t.Ops, rate,
		ms(t.Waits.quantile(0.5)), ms(t.Waits.quantile(0.99)), ms(t.Waits.Max), t.Busy, t.Errors, mb(s.Heap), mb(s.RSS), s.Goroutines, s.FDs,
		mb(s.redis.memory), s.redis.clients, s.redis.keys)
}
