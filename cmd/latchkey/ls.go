package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/latchkey-go/latchkey/redisson"
	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// sortedRows is how many locks are collected, to be sorted and put into columns. Beyond that they are printed as they come, so that
// memory is bounded.
const sortedRows = 1000

func (a *app) lsCommand() *cobra.Command {
	limit := 0
	c := &cobra.Command{
		Use:   "ls [PATTERN]",
		Short: "List the locks that there are",
		Long: `List all locks whose keys match PATTERN, those of Redisson in Java, too. PATTERN is one of Redis' SCAN: * stands for any text, ? for
a byte, [ab] for one of these; without it all are listed. Keys that are no locks are passed over. In a cluster, all masters are asked.

KIND is that of run --kind, as far as Redis shows it: a fair lock for which nobody waits is plain, and so is a spin lock. Others are a
semaphore, a latch or a rate limiter. WAITING is how many clients listen for the end of the lock, or wait in the queue of a fair one. HELD BY is the name of a client
that has one, and the id of the holder otherwise.

A free plain semaphore, or a latch, is a bare number in Redis, and is listed only while somebody waits for it; show finds it by name.

Exit status: 0, also if there are none; 69 for no answer, and 77 if Redis refuses.`,
		Example: `  latchkey ls 'order:*'
  latchkey ls -o json | jq -r 'select(.ttl_seconds > 3600) | .key'`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if limit < 0 {
				return usage("--limit %d: want a number above 0, or 0 for all", limit)
			}
			return a.list(c.Context(), strings.Join(args, ""), limit, &table{app: a, order: byKey})
		},
	}
	a.pace(c)
	c.Flags().IntVar(&limit, "limit", 0, "stop after so many locks; 0 lists all")
	return c
}

func (a *app) list(ctx context.Context, pattern string, limit int, t *table) error {
	if err := a.reach(ctx); err != nil {
		return err
	}
	client, done, err := a.open()
	if err != nil {
		return err
	}
	defer done()
	p := a.progress()
	defer p.stop()
	t.progress = p
	var failed error
	for o, err := range client.Objects(ctx, pattern, a.rests(ctx, p.look)) {
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		if err := t.add(o); err != nil {
			return err
		}
		if p.found.Add(1); limit > 0 && p.found.Load() >= int64(limit) {
			break
		}
	}
	p.stop()
	if failed == nil || p.found.Load() > 0 { // a heading over nothing would look like an answer
		if err := t.flush(); err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if failed != nil {
		return a.unanswered(failed)
	}
	return nil
}

// table prints objects, in columns or in JSON.
type table struct {
	*app
	progress *progress
	order    order
	most     int // rows that are printed, in the end, with their age; 0 is all, as they come
	rows     []redisson.Object
	headed   bool
}

func (t *table) add(o redisson.Object) error {
	t.rows = append(t.rows, o)
	switch {
	case t.most == 0 && (t.json() || len(t.rows) >= sortedRows):
		return t.flush()
	case t.most > 0 && len(t.rows) >= t.most+sortedRows:
		t.sort()
	}
	return nil
}

// sort puts the rows in order, and leaves the first of them where not all are printed.
func (t *table) sort() {
	slices.SortFunc(t.rows, t.order)
	if t.most > 0 && len(t.rows) > t.most {
		clear(t.rows[t.most:])
		t.rows = t.rows[:t.most]
	}
}

func (t *table) flush() error {
	t.sort()
	rows := t.rows
	t.rows = t.rows[:0]
	if t.json() {
		for _, o := range rows {
			if err := t.progress.without(func() error { return t.print(document(o)) }); err != nil {
				return err
			}
		}
		return nil
	}
	w := tabwriter.NewWriter(t.out, 0, 0, 2, ' ', 0)
	line := func(age, rest string) {
		if t.most > 0 {
			rest = age + "\t" + rest
		}
		fmt.Fprint(w, rest)
	}
	if !t.headed {
		line("AGE", heading)
		t.headed = true
	}
	for _, o := range rows {
		line(age(o), row(o))
	}
	return t.progress.without(w.Flush)
}

// progressAfter is how long a search is silent.
const progressAfter = time.Second

// progress shows on a terminal how far a long search has come.
func (a *app) progress() *progress {
	p := &progress{app: a, quit: make(chan struct{}), gone: make(chan struct{})}
	if !term.IsTerminal(int(a.err.Fd())) {
		close(p.gone)
		return p
	}
	start := time.Now()
	go func() {
		defer close(p.gone)
		tick := time.NewTicker(progressAfter)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				p.show(time.Since(start))
			case <-p.quit:
				return
			}
		}
	}()
	return p
}
