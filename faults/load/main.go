// Load keeps package redisson busy and proves that it keeps nothing: many goroutines at few keys, many locks that are held for long,
// and many requests to a guarded gin handler. Each is played by processes of its own on a private Redis server.
//
//	go run ./load          small numbers, in under 90 s
//	go run ./load -long    10,000 goroutines, 100,000 held locks, 2,000 requests a second
//
// A first part warms all up. The memory, goroutines and keys that the processes and Redis have then are compared with
// those after the second part, and after Close; flat.go has the limits. The program ends with status 1 after a leak, an
// error, or two holders at once.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

// quiet keeps go-redis from telling of connections that a server refuses while it starts.
type quiet struct{}

// Printf implements go-redis' logger.
func (quiet) Printf(context.Context, string, ...any) {}

func main() {
	redis.SetLogger(quiet{})
	if kind := os.Getenv(kindVariable); kind != "" {
		if err := serve(kind, newSubject, os.Stdin, os.Stdout); err != nil {
			fmt.Fprintf(os.Stderr, "load: %s: %v\n", kind, err)
			os.Exit(1)
		}
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:], os.Stdout)
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(1)
	}
}

// scenario is one kind of load.
type scenario struct {
	name      string
	kind      string // of its processes
	processes int
	size      size
	warm, run time.Duration
	rate      int // of the requests of a generator each second; 0: the processes make the load
}

// size is how much load there is in each process.
type size struct {
	Goroutines int // that want the locks
	Keys       int
	Watchdog   time.Duration
	Work       time.Duration // under a lock
}

var short = []scenario{
	{"crowd: 2,000 goroutines, 20 keys", "crowd", 2, size{1000, 20, 30 * time.Second, 0}, 5 * time.Second, 10 * time.Second, 0},
	{"held: 10,000 locks", "held", 1, size{64, 10_000, 6 * time.Second, 0}, 4 * time.Second, 12 * time.Second, 0},
	{"http: 500 requests/s", "http", 2, size{0, 200, 30 * time.Second, 2 * time.Millisecond}, 5 * time.Second, 10 * time.Second, 500},
}

var long = []scenario{
	{"crowd: 10,000 goroutines, 100 keys", "crowd", 2, size{5000, 100, 30 * time.Second, 0}, 15 * time.Second, time.Minute, 0},
	{"held: 100,000 locks", "held", 1, size{64, 100_000, 30 * time.Second, 0}, 30 * time.Second, 5 * time.Minute, 0},
	{"http: 2,000 requests/s", "http", 2, size{0, 1000, 30 * time.Second, 2 * time.Millisecond}, 15 * time.Second, time.Minute, 2000},
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("load", flag.ContinueOnError)
	isLong := flags.Bool("long", false, "the whole load, in 9 minutes")
	only := flags.String("only", "", "run the loads whose names have this in them, such as held")
	if err := flags.Parse(args); err != nil {
		return err
	}
	scenarios := short
	if *isLong {
		scenarios = long
	}
	var problems []string
	played := 0
	header(out)
	for _, s := range scenarios {
		if !strings.Contains(s.name, *only) {
			continue
		}
		played++
		found, err := s.play(ctx, out, settleTime)
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		for _, p := range found {
			problems = append(problems, s.name+": "+p)
			fmt.Fprintln(out, "  PROBLEM:", p)
		}
	}
	fmt.Fprintf(out, "load: %d loads, %d problems\n", played, len(problems))
	if len(problems) > 0 || played == 0 {
		return fmt.Errorf("%d loads, problems: %s", played, strings.Join(problems, "; "))
	}
	return nil
}
