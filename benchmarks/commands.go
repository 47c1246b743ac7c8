package main

import (
	"context"
)

// counted are the workloads whose commands are counted: the same jobs as in the rounds, for longer.
var counted = []struct {
	prefix    string
	processes int
	job       job
	fit       func(contestant) bool
}{
	{"pair", 1, job{Do: "load", Callers: 1}, everyone},
	{"one_key", 1, job{Do: "load", OneKey: true, Callers: 64, Away: 2}, contestant.canWait},
	{"processes", 4, job{Do: "load", OneKey: true, Callers: 16, Away: 2}, canTeam},
	{"turns", 2, job{Do: "turns"}, canTeam},
}

// canTeam reports whether a peer can wait, and be in several processes at once: of a JVM there is one.
func canTeam(c contestant) bool { return c.waits && c.isGo() }

func commandMetrics() []string {
	var all []string
	for _, c := range counted {
		all = append(all, c.prefix+"_commands", c.prefix+"_executed")
	}
	return all
}

// commands has the peers work through a proxy, which counts what they send. It is slower than a direct connection, so
// nothing else is measured here.
func commands(ctx context.Context, b *bench) error {
	p, err := listenAndCount(b.server.addr)
	if err != nil {
		return err
	}
	defer p.Close()
	for _, c := range counted {
		for _, name := range b.all(c.fit) {
			j := c.job
			j.Addr = p.Addr()
			if err := b.count(ctx, p, name, c.processes, c.prefix, j); err != nil && ctx.Err() != nil {
				return context.Cause(ctx)
			}
		}
	}
	return nil
}

// count does a job twice and counts the second time, when connections are there and scripts are loaded.
func (b *bench) count(ctx context.Context, p *proxy, name string, processes int, prefix string, j job) error {
	j.Millis = int(b.slice.Milliseconds()) / 3
	if _, err := b.do(ctx, name, processes, j); err != nil {
		return err
	}
	if err := b.server.reset(ctx); err != nil {
		return err
	}
	p.Reset()
	j.Millis = int((2 * b.slice).Milliseconds())
	r, err := b.do(ctx, name, processes, j)
	if err != nil {
		return err
	}
	sent := total(p.Counts())
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
