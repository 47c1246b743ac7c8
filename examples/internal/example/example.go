// Package example runs an example with the lock service that its command line names.
package example

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/memlock"
	"github.com/latchkey-go/latchkey/redisson"
)

// Main is the main function of an example. The flag --redis, or else the variable LATCHKEY_REDIS_URL, is the URL of a Redis such
// as redis://localhost:6379; without both the locks are those of this process, so that an example runs with nothing installed. An
// interrupt ends the context of run, and the locks are closed after run has returned; a second one ends the program at once.
func Main(run func(ctx context.Context, locker lock.Locker, out io.Writer) error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	if err := with(ctx, os.Args[1:], run); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// with runs an example. Work that an interrupt cuts short is no failure.
func with(ctx context.Context, args []string, run func(context.Context, lock.Locker, io.Writer) error) error {
	locker, done, err := open(args)
	if err != nil {
		return err
	}
	err = run(ctx, locker, os.Stdout)
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		err = nil
	}
	return errors.Join(err, done())
}

func open(args []string) (locker lock.Locker, done func() error, err error) {
	flags := flag.NewFlagSet("", flag.ContinueOnError)
	url := flags.String("redis", os.Getenv("LATCHKEY_REDIS_URL"), "`URL` of a Redis, redis://host:port; LATCHKEY_REDIS_URL without it, or else locks within this process")
	if err := flags.Parse(args); err != nil {
		return nil, nil, err
	}
	if flags.NArg() > 0 {
		return nil, nil, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if *url == "" {
		return memlock.New(), func() error { return nil }, nil
	}
	client, err := redisson.Open(*url)
	if err != nil {
		return nil, nil, err
	}
	return client, client.Close, nil
}

// Serve serves h on localhost:8080 until ctx ends. It returns when all handlers have, and so all locks are given back.
func Serve(ctx context.Context, h http.Handler, out io.Writer) error {
	l, err := net.Listen("tcp", "localhost:8080")
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "listening on http://localhost:8080")
	return serve(ctx, l, h)
}

func serve(ctx context.Context, l net.Listener, h http.Handler) error {
	server := &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(l) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
		return server.Shutdown(context.WithoutCancel(ctx))
	}
}
