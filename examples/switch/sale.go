package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
)

const callers = 4 // that sell at a time in each process

// open opens a box office, has all processes sell, and looks whether each sale was booked.
func open(ctx context.Context, svc service, s settings, out io.Writer) error {
	dir, err := os.MkdirTemp("", "latchkey-switch-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	s.box = dir
	b := box(dir)
	if svc.local {
		s.processes = 1
	}
	total := s.processes * s.sales
	if err := b.fill(total); err != nil {
		return err
	}
	if err := sellAll(ctx, svc, s); err != nil {
		return err
	}
	left, err := b.left()
	if err != nil {
		return err
	}
	made, err := b.made()
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s: %d process(es) sold %d of %d seats and made %d report(s)\n", svc.name, s.processes, total-left, total, made)
	if left != 0 || made != 1 {
		return errors.New("the lock did not hold")
	}
	return nil
}

// sellAll runs the processes. Where they can't share locks, this process is the only one.
func sellAll(ctx context.Context, svc service, s settings) error {
	if svc.local {
		return sellFor(ctx, svc, s)
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	failures := make([]error, s.processes)
	var all sync.WaitGroup
	for i := range failures {
		all.Go(func() {
			cmd := exec.CommandContext(ctx, self, "-locker", svc.name, "-addr", s.addr, "-sales", strconv.Itoa(s.sales), "-box", s.box)
			if said, err := cmd.CombinedOutput(); err != nil {
				failures[i] = fmt.Errorf("process %d: %w\n%s", i+1, err, said)
			}
		})
	}
	all.Wait()
	return errors.Join(failures...)
}

// sellFor is what one process does.
func sellFor(ctx context.Context, svc service, s settings) error {
	locker, closing, err := svc.open(ctx, s.addr)
	if err != nil {
		return fmt.Errorf("%s at %s: %w", svc.name, s.addr, err)
	}
	run := filepath.Base(s.box) // keys of this run, as the service may know others
	g, err := newGuarded(locker, box(s.box))
	if err == nil {
		err = errors.Join(g.report(ctx, Report{Day: run}), sell(ctx, g, s, run))
	}
	return errors.Join(err, closing())
}

// sell has all callers of the process sell their share.
func sell(ctx context.Context, g guarded, s settings, show string) error {
	failures := make([]error, callers)
	var all sync.WaitGroup
	for i := range failures {
		all.Go(func() {
			for n := i; n < s.sales && failures[i] == nil; n += callers {
				failures[i] = g.sell(ctx, Sale{Show: show})
			}
		})
	}
	all.Wait()
	return errors.Join(failures...)
}
