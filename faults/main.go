// Faults plays with the locks of package redisson in several processes on private Redis servers, while it breaks the servers, the
// processes and what lies between them, and then proves from their histories that no lock was broken.
//
//	go run .                    every kind of fault once, in under 4 minutes
//	go run . -long              until there were 300,000 critical sections
//	go run . -seed 7 -only late the schedule of seed 7, and of it only some kinds of fault
//
// It ends with a line of sums and status 0, or with what was broken, the folder with the histories, and the command that does it
// again.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"syscall"
	"time"

	"github.com/latchkey-go/latchkey/faults/worker"
	"github.com/redis/go-redis/v9"
	"github.com/rs/zerolog"
)

func main() {
	hush()
	if text := os.Getenv(workerVariable); text != "" {
		if err := work(text); err != nil {
			fmt.Fprintln(os.Stderr, "faults: worker:", err)
			os.Exit(1)
		}
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
	case errors.Is(err, errUsage):
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "faults:", err)
		os.Exit(1)
	}
}

// hush keeps go-redis and toxiproxy from telling of connections that fail: they are meant to.
func hush() {
	redis.SetLogger(quiet{})
	zerolog.SetGlobalLevel(zerolog.Disabled)
}

type quiet struct{}

// Printf implements go-redis' logger.
func (quiet) Printf(context.Context, string, ...any) {}

// work has the process be a worker.
func work(text string) error {
	var s worker.Setup
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return err
	}
	return worker.Serve(s, os.Stdin, os.Stdout)
}

// errUsage is a mistake in the flags that the user has already seen.
var errUsage = errors.New("usage")

// config is what the flags say.
type config struct {
	long bool
	seed uint64
	only *regexp.Regexp
	dir  string

	sections int64   // that each world has at least
	least    float64 // sections a second, below which a run is void
}

// longSections is how many critical sections the long form has at least.
const longSections = 300_000

func parse(args []string, stderr io.Writer) (config, error) {
	c := config{only: regexp.MustCompile(""), least: 100}
	flags := flag.NewFlagSet("faults", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.BoolVar(&c.long, "long", false, fmt.Sprintf("play on until there were %d critical sections", longSections))
	flags.Uint64Var(&c.seed, "seed", 0, "play the schedule of this `number`; 0 takes one by the clock")
	flags.Func("only", "`regexp` of kinds of fault: only they are made", func(text string) (err error) {
		c.only, err = regexp.Compile(text)
		return err
	})
	flags.StringVar(&c.dir, "dir", "", "`folder` for the histories, which are then kept; without it a new one, kept only if something was broken")
	if err := flags.Parse(args); err != nil {
		return c, errors.Join(errUsage, err)
	}
	if flags.NArg() > 0 {
		fmt.Fprintln(stderr, "faults takes no arguments")
		flags.Usage()
		return c, errUsage
	}
	if c.seed == 0 {
		c.seed = uint64(time.Now().UnixNano()) % 1_000_000
	}
	return c, nil
}

// again is the command that plays the same schedule.
func (c config) again() string {
	text := fmt.Sprintf("go -C faults run . -seed %d", c.seed)
	if c.long {
		text += " -long"
	}
	if c.only.String() != "" {
		text += fmt.Sprintf(" -only %q", c.only)
	}
	return text
}

func run(ctx context.Context, args []string, out, stderr io.Writer) error {
	c, err := parse(args, stderr)
	if err != nil {
		return err
	}
	return c.play(ctx, plans(), out)
}

// play plays the worlds, keeps the histories if something is wrong, and prints what came of it.
func (c config) play(ctx context.Context, plans []plan, out io.Writer) (err error) {
	worlds := selected(plans, c.only)
	if len(worlds) == 0 {
		return fmt.Errorf("no kind of fault is called %v", c.only)
	}
	if c.long {
		c.sections = longSections/int64(len(worlds)) + 1
	}
	keep := c.dir != ""
	if !keep {
		if c.dir, err = os.MkdirTemp("", "latchkey-faults-"); err != nil {
			return err
		}
	}
	sums, err := playAll(ctx, c, worlds, out)
	sums.report(out)
	if err != nil {
		fmt.Fprintf(out, "the histories are in %s; again: %s\n", c.dir, c.again())
		return err
	}
	if !keep {
		return os.RemoveAll(c.dir)
	}
	return nil
}
