// Benchmarks measures Latchkey beside other lock libraries, on a private redis-server.
//
//	go run .                    all workloads, seven rounds
//	go run . -only turns        one of them; see -help
//
// README.md says how to read what comes out.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"syscall"
	"time"
)

// maxSpread is how far the values of the base may lie apart, as a part of their median. Beyond that, the machine was busy
// with something else, and the figures are worth nothing.
const maxSpread = 0.30

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	err := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
	case errors.Is(err, errUsage):
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "benchmarks:", err)
		os.Exit(1)
	}
}

// errUsage is a mistake in the flags that the user has already seen.
var errUsage = errors.New("usage")

// config is what the flags say.
type config struct {
	rounds      int
	slice       time.Duration
	only, peers *regexp.Regexp
	out         string
	record      bool
	readme      bool
	counts      string
	worker      string
}

func parse(args []string, stderr io.Writer) (config, error) {
	c := config{only: regexp.MustCompile(""), peers: regexp.MustCompile("")}
	long := false
	flags := flag.NewFlagSet("benchmarks", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.IntVar(&c.rounds, "rounds", 7, "how many rounds")
	flags.DurationVar(&c.slice, "slice", 200*time.Millisecond, "how long a peer runs one workload in a round; those on one key take twice as long")
	flags.BoolVar(&long, "long", false, "at least 21 rounds, and slices of 300ms, for figures of record")
	flags.Func("only", "`regexp` of workloads and figures: only what they need runs", into(&c.only))
	flags.Func("peers", "`regexp` of peers: only they run", into(&c.peers))
	flags.StringVar(&c.out, "out", "out", "`folder` for figures.json and the charts")
	flags.BoolVar(&c.record, "record", false, "keep the figures and the charts beside README.md, and bring it up to date")
	flags.BoolVar(&c.readme, "readme", false, "only print all tables of figures.json, bring README.md up to date with it, and draw the charts again")
	flags.StringVar(&c.counts, "counts", "", "only count what an acquisition takes, and compare it with this `file`; with -record, write it")
	flags.StringVar(&c.worker, workerFlag[1:], "", "`peer` for which to work; for the program's own use")
	if err := flags.Parse(args); err != nil {
		return c, errors.Join(errUsage, err)
	}
	if flags.NArg() > 0 || c.rounds < 1 || c.slice < passes*time.Millisecond {
		fmt.Fprintln(stderr, "benchmarks takes no arguments, at least one round, and a slice of some milliseconds")
		flags.Usage()
		return c, errUsage
	}
	if long {
		c.rounds, c.slice = max(c.rounds, 21), max(c.slice, 300*time.Millisecond)
	}
	return c, nil
}

func into(to **regexp.Regexp) func(string) error {
	return func(text string) (err error) {
		*to, err = regexp.Compile(text)
		return err
	}
}

func run(ctx context.Context, args []string, in io.Reader, out, stderr io.Writer) error {
	c, err := parse(args, stderr)
	if err != nil {
		return err
	}
	if c.worker != "" {
		return serve(ctx, c.worker, in, out)
	}
	switch {
	case c.readme:
		return show(out)
	case c.counts != "":
		return countAll(ctx, c, out)
	}
	chosen := selected(c.only)
	if len(chosen) == 0 {
		return fmt.Errorf("nothing is called %v", c.only)
	}
	return measureAll(ctx, c, chosen, out)
}
