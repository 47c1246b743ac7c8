package main

import (
	"context"
	"errors"
)

// canTeam reports whether a peer can wait, and be in several processes at once: of a JVM there is one.
func canTeam(c contestant) bool { return c.waits && c.isGo() }

func commandMetrics(prefix string) []string {
	return []string{prefix + "_commands", prefix + "_executed"}
}

// commands has the peers that fit do a job of a workload through a proxy, which counts what they send. It is slower than a
// direct connection, so nothing else is measured here.
func commands(prefix string, processes int, j job, fit func(contestant) bool) func(context.Context, *bench) error {
	return func(ctx context.Context, b *bench) error {
		j.Addr = b.counter.Addr
		for _, name := range b.all(fit) {
			if err := b.count(ctx, name, processes, prefix, j); err != nil && !errors.Is(err, errSaid) {
				return err
			}
		}
		return nil
	}
}

// count does a job twice and counts the second time, when connections are there and scripts are loaded.
func (b *bench) count(ctx context.Context, name string, processes int, prefix string, j job) error {
	j.Millis = int(b.slice.Milliseconds()) / 3
	if _, err := b.do(ctx, name, processes, j); err != nil {
		return err
	}
	if err := b.server.reset(ctx); err != nil {
		return err
	}
	b.counter.Reset()
	j.Millis = int((2 * b.slice).Milliseconds())
	r, err := b.do(ctx, name, processes, j)
	if err != nil {
		return err
	}
	sent := total(b.counter.Counts())
	done, err := b.server.calls(ctx)
	if err != nil || r.Done == 0 {
		return err
	}
	b.note(prefix+"_commands", name, float64(sent)/float64(r.Done))
	b.note(prefix+"_executed", name, float64(total(done.executed))/float64(r.Done))
	return nil
}

func total(counts map[string]int64) int64 {
	var n int64
	for _, c := range counts {
		n += c
	}
	return n
}
