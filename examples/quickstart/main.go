// Quickstart is a small bank behind gin and gRPC, whose endpoints are guarded in each of Latchkey's spellings.
//
//	go -C examples run ./quickstart            serve, and print lines to try
//	go -C examples run ./quickstart -console   see locks and guards on a page, while requests keep coming
//
// It brings a Redis of its own; --redis or LATCHKEY_REDIS_URL names another. Read guards.go first.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/latchkey-go/latchkey/redisson"
	"github.com/redis/go-redis/v9"
)

func main() {
	gin.SetMode(gin.ReleaseMode)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	switch err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); {
	case errors.Is(err, flag.ErrHelp):
	case errors.Is(err, errUsage):
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "quickstart:", err)
		os.Exit(1)
	}
}

// config is what the flags say.
type config struct {
	httpAddr, grpcAddr string
	redis, redisAddr   string // URL, and what of it may be shown; empty for the embedded one
	latency            time.Duration
	console            bool
}

// errUsage is a mistake in the flags that the user has already seen.
var errUsage = errors.New("usage")

func parse(args []string, stderr io.Writer) (config, error) {
	var c config
	flags := flag.NewFlagSet("quickstart", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&c.httpAddr, "http", ":8080", "`address` for HTTP")
	flags.StringVar(&c.grpcAddr, "grpc", ":9090", "`address` for gRPC")
	flags.DurationVar(&c.latency, "latency", 0, "how long the bank's database takes (default 1ms, or 300ms for -console)")
	flags.BoolVar(&c.console, "console", false, "show locks and guards on a page, on this machine only, while requests keep coming")
	flags.Func("redis", "`URL` of a Redis, redis://host:port; LATCHKEY_REDIS_URL without it, or else one within this process", func(url string) error {
		o, err := redis.ParseURL(url)
		if err == nil {
			c.redis, c.redisAddr = url, o.Addr
		}
		return err
	})
	if url := os.Getenv("LATCHKEY_REDIS_URL"); url != "" {
		args = append([]string{"--redis=" + url}, args...) // a flag behind it takes its place
	}
	if err := flags.Parse(args); err != nil {
		return c, errors.Join(errUsage, err)
	}
	if flags.NArg() > 0 {
		fmt.Fprintf(stderr, "unexpected argument %q\n", flags.Arg(0))
		flags.Usage()
		return c, errUsage
	}
	if c.latency == 0 && c.console {
		c.latency = consoleLatency
	}
	c.latency = cmp.Or(c.latency, time.Millisecond)
	return c, nil
}

// run is the program. It returns when ctx ends.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	c, err := parse(args, stderr)
	if err != nil {
		return err
	}
	if c.redis == "" {
		r, err := startEmbedded()
		if err != nil {
			return err
		}
		defer r.Close()
		c.redis, c.redisAddr = "redis://"+r.Addr(), r.Addr()
	}
	locker, err := redisson.Open(c.redis, redisson.Name("quickstart"), redisson.Describe())
	if err != nil {
		return err
	}
	defer locker.Close()
	if err := ping(ctx, locker); err != nil {
		fmt.Fprintf(stderr, "Redis at %s: %v. Guarded endpoints answer 503 until it is there.\n", c.redisAddr, err)
	}
	s, err := newServer(newBank(c.latency), locker, c.httpAddr, c.grpcAddr)
	if err != nil {
		return err
	}
	if c.console {
		return runConsole(ctx, s, locker, stdout)
	}
	fmt.Fprintf(stdout, hints, s.httpAddr(), s.grpcAddr(), c.redisAddr)
	return s.serve(ctx)
}

// ping tells early what is wrong with Redis. Latchkey does not need it: a program may start before its Redis.
func ping(ctx context.Context, locker *redisson.Client) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	return locker.Ping(ctx)
}

// hints want the addresses for HTTP, for gRPC and of Redis.
const hints = `A bank, HTTP on %[1]s, gRPC on %[2]s, locks in Redis at %[3]s. Try:

  curl -i %[1]s/transfers -d '{"from":"alice","to":"bob","cents":100}'
  curl -i %[1]s/transfers -d '{"from":"alice","cents":100}'
  curl -i -X POST %[1]s/accounts/alice/statements
  curl -i %[1]s/orders/7/payments -d '{"cents":100}'
  curl -s %[1]s/records
  grpcurl -plaintext -d '{"from":"alice","to":"bob","cents":100}' %[2]s latchkey.examples.bank.v1.Bank/Transfer
  grpcurl -plaintext -d '{"account":"alice","cents":100}' %[2]s latchkey.examples.bank.v1.Bank/Deposit

To see a lock that is busy, restart with -latency 5s and send two of these at once. Ctrl-C ends it.
`
