// Command hold takes a lock and says what becomes of it, for rehearsals of the run-books:
//
//	hold -watchdog 6s order:42
//
// It holds the lock until it is interrupted, the lock is lost, or the time of -for is over.
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson"
	"github.com/redis/go-redis/v9"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "hold:", err)
		os.Exit(1)
	}
}

// silent is a logger for go-redis, which says each time that it can't connect.
type silent struct{}

// Printf says nothing.
func (silent) Printf(context.Context, string, ...any) {}

func run(ctx context.Context, args []string, out io.Writer) (err error) {
	var r lock.Request
	flags := flag.NewFlagSet("hold", flag.ExitOnError)
	url := flags.String("redis", cmp.Or(os.Getenv("LATCHKEY_REDIS_URL"), "redis://localhost:6379"), "`URL` of Redis")
	watchdog := flags.Duration("watchdog", redisson.DefaultWatchdogTimeout, "the watchdog's timeout")
	hold := flags.Duration("for", math.MaxInt64, "how long to hold the lock")
	name := flags.String("name", "", "of the client, which then describes what it holds")
	flags.TextVar(&r.Kind, "kind", lock.Exclusive, "`kind` of lock")
	flags.DurationVar(&r.Wait, "wait", 0, "how long to wait for it")
	flags.DurationVar(&r.Lease, "lease", 0, "how long it stands; 0: it is renewed")
	flags.DurationVar(&r.MaxHold, "max-hold", 0, "how long it is renewed; 0: until it is released")
	_ = flags.Parse(args) // ends the program over a mistake
	r.Key, r.Limit = flags.Arg(0), 1
	opts := []redisson.Option{redisson.WatchdogTimeout(*watchdog)}
	if *name != "" {
		opts = append(opts, redisson.Name(*name), redisson.Describe())
	}
	client, err := redisson.Open(*url, opts...)
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, client.Close()) }()

	redis.SetLogger(silent{})
	start := time.Now()
	say := func(format string, args ...any) {
		fmt.Fprintf(out, "%4.1fs  %s\n", time.Since(start).Seconds(), fmt.Sprintf(format, args...))
	}
	h, err := client.Acquire(ctx, r)
	if err != nil {
		say("not held: %v", err)
		return nil
	}
	say("held")
	select {
	case <-time.After(*hold):
	case <-ctx.Done():
	case <-h.Context().Done():
		say("%v", context.Cause(h.Context()))
		_ = h.Release(context.Background()) // says the same
		return nil
	}
	if err := h.Release(context.Background()); err != nil {
		say("release: %v", err)
		return nil
	}
	say("released")
	return nil
}
