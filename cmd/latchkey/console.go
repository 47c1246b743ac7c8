package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/latchkey-go/latchkey/console"
	"github.com/spf13/cobra"
)

type consoleFlags struct {
	listen    string
	allowFree bool
	shorten   bool
}

func (a *app) consoleCommand() *cobra.Command {
	var f consoleFlags
	c := &cobra.Command{
		Use:   "console",
		Short: "Show the locks on a page in the browser",
		Long: `Serve the page of package console on this machine, and print its address. It shows which locks are held, by whom and for how long, and
who waits; only requests from this machine are answered.

With --allow-free, locks can be freed by hand on it. Whoever can reach this machine's loopback address can do so.

Exit status: 128 and the number of the signal that ended it; 64 for a mistake in the arguments, or an address that can't be had.`,
		Example: `  latchkey console
  ssh -L 7090:localhost:7090 host latchkey console --listen localhost:7090`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return a.console(c.Context(), f) },
	}
	c.Flags().StringVar(&f.listen, "listen", "localhost:7090", "address of this machine to serve on; port 0 is any free one")
	c.Flags().BoolVar(&f.allowFree, "allow-free", false, "locks can be freed on the page")
	c.Flags().BoolVar(&f.shorten, "shorten-keys", false, "show keys in part, as they may be personal data")
	return c
}

func (a *app) console(ctx context.Context, f consoleFlags) error {
	client, done, err := a.open()
	if err != nil {
		return err
	}
	defer done()
	var opts []console.Option
	if f.allowFree {
		opts = append(opts, console.AllowFree(func(*http.Request) error { return nil }))
	}
	if !f.shorten {
		opts = append(opts, console.ShowKeys(console.Whole))
	}
	page, err := console.New(client, nil, opts...)
	if err != nil {
		return err
	}
	l, err := listen(f.listen)
	if err != nil {
		return err
	}
	if a.json() {
		err = a.print(map[string]any{"url": "http://" + l.Addr().String() + "/"})
	} else {
		_, err = fmt.Fprintf(a.out, "http://%s/\n", l.Addr())
	}
	return errors.Join(err, serve(ctx, l, page))
}

// listen refuses an address that others can reach: the page would answer nobody there.
func listen(address string) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, usage("--listen: %w", err)
	}
	if tcp, ok := l.Addr().(*net.TCPAddr); !ok || !tcp.IP.IsLoopback() {
		_ = l.Close()
		return nil, usage("--listen %s: want an address of this machine alone, such as localhost:7090", address)
	}
	return l, nil
}

// serve ends with ctx, with its cause.
func serve(ctx context.Context, l net.Listener, page http.Handler) error {
	const farewell = time.Second
	server := &http.Server{Handler: page, ReadHeaderTimeout: 10 * time.Second}
	var err error
	ended := make(chan struct{})
	go func() { defer close(ended); err = server.Serve(l) }()
	select {
	case <-ended:
		return err
	case <-ctx.Done():
	}
	bound, cancel := context.WithTimeout(context.Background(), farewell)
	defer cancel()
	if server.Shutdown(bound) != nil {
		_ = server.Close()
	}
	<-ended
	return context.Cause(ctx)
}
