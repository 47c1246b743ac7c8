// Command rehearse is redis-cli for the blows of a rehearsal, under a name that does not exist where a run-book is used at night:
//
//	rehearse FLUSHALL
//
// It refuses a Redis that is on another machine, or has more keys than a rehearsal needs.
package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"

	"github.com/redis/go-redis/v9"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "rehearse:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	flags := flag.NewFlagSet("rehearse", flag.ExitOnError)
	url := flags.String("redis", "redis://localhost:6379", "`URL` of Redis")
	_ = flags.Parse(args) // ends the program over a mistake
	o, err := redis.ParseURL(*url)
	if err != nil {
		return err
	}
	host, port, err := net.SplitHostPort(o.Addr)
	if err != nil {
		return err
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return fmt.Errorf("%s is not this machine", host)
	}
	rdb := redis.NewClient(o)
	defer rdb.Close()
	const most = 20
	switch n, err := rdb.DBSize(context.Background()).Result(); {
	case err != nil:
		return fmt.Errorf("this is no Redis for rehearsals: %w", err)
	case n > most:
		return fmt.Errorf("this is no Redis for rehearsals: it has %d keys", n)
	}
	cmd := exec.Command("redis-cli", append([]string{"-p", port}, flags.Args()...)...) //nolint:gosec // this is what it is for
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	return cmd.Run()
}
