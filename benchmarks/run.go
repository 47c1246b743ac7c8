package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// measureAll runs the workloads round by round, and reports.
func measureAll(ctx context.Context, c config, chosen []workload, out io.Writer) error {
	start := time.Now()
	if err := os.MkdirAll(c.out, 0o755); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "benchmarks")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithCancel(ctx) // ends every process that was started
	defer cancel()
	b := &bench{out: out, rounds: c.rounds, slice: c.slice, peers: c.peers, dir: dir, samples: samples{},
		workers: map[string][]*process{}, failed: map[string]string{}, lacks: map[string]string{}, broken: map[string]bool{}, said: map[string]bool{}}
	defer b.close()
	if stop, err := keepAwake(); err != nil {
		b.say("idle processors may halt, so one caller is now fast and now slow: %v", err)
	} else {
		defer stop()
	}
	if stop, err := b.openRedis(ctx); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		b.say("no Redis: %v; what needs none runs", err)
		chosen = slices.DeleteFunc(chosen, func(w workload) bool { return !w.local })
	} else {
		defer stop()
	}
	if err := b.runAll(ctx, chosen); err != nil {
		return err
	}
	if err := b.repeatVoid(ctx, chosen, c); err != nil {
		return err
	}
	r := b.report()
	if err := r.write(filepath.Join(c.out, "figures.json")); err != nil {
		return err
	}
	if err := r.draw(c.out); err != nil {
		return fmt.Errorf("charts: %w", err)
	}
	for _, g := range r.grids() {
		g.text(out)
	}
	fmt.Fprintf(out, "\n%s\n%d rounds in %v, %d more are void; the figures are in %s\n", r.Machine, r.Rounds, time.Since(start).Round(time.Second), r.Void, c.out)
	if err := b.quiet(); err != nil || !c.record {
		return err
	}
	return record(r, len(chosen) < len(workloads))
}

// openRedis starts the server and what stands before it, and returns a function that ends them.
func (b *bench) openRedis(ctx context.Context) (stop func(), err error) {
	s, err := startServer(ctx)
	if err != nil {
		return nil, err
	}
	if b.counter, err = listenAndCount(s.addr); err != nil {
		s.stop()
		return nil, err
	}
	if b.link, err = openLink(s.addr); err != nil {
		b.counter.Close()
		s.stop()
		return nil, err
	}
	b.server = s
	b.say("redis-server %s at %s", s.version, s.addr)
	return func() {
		b.counter.Close()
		b.link.Close()
		s.stop()
	}, nil
}

// quiet returns an error if the base says that the machine was busy.
func (b *bench) quiet() error {
	for _, metric := range baseMetrics {
		if s := spread(b.samples.values(metric, base)); s > maxSpread {
			return fmt.Errorf("the base %s spreads over %.0f %% in %s: the machine was busy with something else; run it again when it is quiet", base, 100*s, metric)
		}
	}
	return nil
}

func (b *bench) runAll(ctx context.Context, chosen []workload) error {
	for b.round = range b.rounds {
		if err := b.runRound(ctx, chosen); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) runRound(ctx context.Context, chosen []workload) error {
	defer b.renew()
	fmt.Fprintf(b.out, "round %d of %d:", b.round+1, b.rounds)
	start := time.Now()
	for _, w := range chosen {
		if w.most > 0 && b.round >= w.most {
			continue
		}
		fmt.Fprint(b.out, " ", w.name, ";")
		err := w.run(ctx, b)
		if ctx.Err() != nil {
			return errors.New("interrupted")
		}
		if err != nil && !errors.Is(err, errSaid) {
			b.say("%s: %v", w.name, err)
		}
	}
	fmt.Fprintln(b.out, "", time.Since(start).Round(time.Second))
	return nil
}

// repeatVoid runs another round for each in which the machine had another pace than in most: one at most, and as many
// as there were rounds if the figures are kept. A round is judged by the base alone, so nobody's figure decides whether
// it counts.
func (b *bench) repeatVoid(ctx context.Context, chosen []workload, c config) error {
	most := 1
	if c.record {
		most = c.rounds
	}
	for range most {
		if b.quiet() == nil {
			return nil
		}
		b.round = b.rounds
		b.rounds++
		if err := b.runRound(ctx, chosen); err != nil {
			return err
		}
		if void := b.samples.void(maxSpread); b.rounds-len(void) >= c.rounds {
			b.samples.drop(void)
			b.void = len(void)
			return nil
		}
	}
	return nil
}

// report makes the figures of what was measured.
func (b *bench) report() report {
	r := report{Machine: machine(), Date: time.Now().UTC().Format(time.DateOnly), Versions: versions(), Rounds: b.rounds - b.void, Void: b.void,
		Base: spread(b.samples.values("pair_us", base))}
	if b.server != nil {
		r.Versions["redis-server"] = b.server.version
	}
	r.Figures = figures(b.samples, b.missing)
	return r
}
