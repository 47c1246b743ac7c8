package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/faults/clock"
)

// atOnce is how many worlds are played at a time: most of their time they wait.
const atOnce = 2

// playAll plays all worlds and checks their histories.
func playAll(ctx context.Context, c config, worlds []plan, out io.Writer) (*sums, error) {
	var mu sync.Mutex
	say := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintf(out, format+"\n", args...)
	}
	start, all, room := time.Now(), &sums{strikes: map[string]int{}}, make(chan struct{}, atOnce)
	errs := make([]error, len(worlds))
	var wg sync.WaitGroup
	for i, p := range worlds {
		wg.Go(func() {
			room <- struct{}{}
			defer func() { <-room }()
			errs[i] = playOne(ctx, c, &p, say)
			if leftOut(errs[i]) {
				say("%-9s %v", p.name, errs[i])
				errs[i] = nil
				return
			}
			if errs[i] != nil {
				say("%-9s ends early: %v", p.name, errs[i])
			}
			r, err := judge(filepath.Join(c.dir, p.name, "log"), p)
			if errs[i] = errors.Join(errs[i], err); err != nil {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			all.add(p.name, r)
		})
	}
	wg.Wait()
	all.took = time.Since(start)
	err := errors.Join(errs...)
	return all, errors.Join(err, all.verdict(c.least))
}

// leftOut reports whether a world can't be played because something is not installed, and need not be.
func leftOut(err error) bool {
	return errors.Is(err, errNoJava) && !strings.Contains(os.Getenv("LATCHKEY_REQUIRE"), "redisson") || errors.Is(err, clock.ErrNoCompiler)
}

// playOne plays all kinds of fault of one world that its servers can have, in an order that the seed says. The others are struck off its plan.
func playOne(ctx context.Context, c config, p *plan, say func(string, ...any)) error {
	w, err := build(ctx, *p, c.dir, c.seed, say)
	if err != nil {
		return err
	}
	defer w.stop()
	p.kinds = slices.DeleteFunc(p.kinds, func(k kind) bool { return k.command != "" && !w.offers(ctx, k.command) })
	for done := false; !done; done = w.sections() >= c.sections {
		w.rng.Shuffle(len(p.kinds), func(i, j int) { p.kinds[i], p.kinds[j] = p.kinds[j], p.kinds[i] })
		for _, k := range p.kinds {
			if err := w.play(ctx, k); err != nil {
				return err
			}
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
		}
	}
	return w.end(ctx)
}

// sections returns how many sections there were so far.
func (w *world) sections() (n int64) {
	for i := range w.board {
		n += w.board[i].Entered.Load()
	}
	return n
}
