// Switch sells the seats of a show from several processes, with one lock service or another. Its guards are the same for all of them:
//
//	go -C examples run ./switch -locker memory
//	go -C examples run ./switch -locker etcd                                      # embedded, in a process of its own
//	go -C examples run ./switch -locker postgres -start                           # starts a private server
//	go -C examples run ./switch -locker redis -addr redis://localhost:6379
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"

	"github.com/latchkey-go/latchkey/lock/etcdlock/etcdtest"
)

func main() {
	etcdtest.Main() // does not return where this process is the embedded etcd
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout)
	cancel()
	if err != nil {
		fmt.Fprintln(os.Stderr, "switch:", err)
		os.Exit(1)
	}
}

// settings are the flags.
type settings struct {
	locker, addr     string
	start            bool
	processes, sales int
	box              string // the directory of a box office that is open already: this process only sells
}

func run(ctx context.Context, args []string, out io.Writer) error {
	var s settings
	flags := flag.NewFlagSet("switch", flag.ContinueOnError)
	flags.StringVar(&s.locker, "locker", "memory", "the lock service: "+names())
	flags.StringVar(&s.addr, "addr", "", "where it is; see the README for each")
	flags.BoolVar(&s.start, "start", false, "start a private server for the time of the run")
	flags.IntVar(&s.processes, "processes", 2, "how many processes sell; memory has one")
	flags.IntVar(&s.sales, "sales", 20, "how many seats each process sells")
	flags.StringVar(&s.box, "box", "", "sell for the box office in this directory, and don't open one")
	if err := flags.Parse(args); err != nil {
		return err
	}
	svc, err := find(s.locker)
	if err != nil {
		return err
	}
	if s.box != "" {
		return sellFor(ctx, svc, s)
	}
	addr, stop, err := svc.where(s)
	if err != nil {
		return err
	}
	defer stop()
	s.addr = addr
	return open(ctx, svc, s, out)
}
