package main

import (
	"context"
	"fmt"
	"time"

	"github.com/latchkey-go/latchkey/cmd/latchkey/internal/checkup"
	"github.com/latchkey-go/latchkey/cmd/latchkey/internal/safe"
	"github.com/spf13/cobra"
)

func (a *app) doctorCommand() *cobra.Command {
	o := checkup.Options{}
	var quoted, deadlocks bool
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Look for what is wrong with a Redis that keeps locks",
		Long: `Look at the server's version, eviction, persistence and replicas, the rights of the user, the channels and slots of a cluster,
the clock and the latency. Nothing is changed, and no lock is taken.

Each line begins with one of

  ok      as it should be
  warn    locks can be lost, or be slow, in cases that you may have decided to live with
  fail    locks will be lost, or can't be taken
  skip    this user may not ask

and those below it, after "->", say what to type in redis-cli or to do. Rights are looked at for each feature, on the lock that
--key names: give it a name such as your programs use. Missing ones are a warning, as long as there is a feature that can be used.

With --deadlocks, it looks at all locks instead, for calls that hold one and wait for another in a circle. It knows what clients with
redisson.Describe tell.

Exit status: 0, 1 if a line says fail, 69 for no answer, 77 for a wrong password.`,
		Example: `  latchkey doctor --key order:42
  latchkey doctor --deadlocks
  latchkey doctor -o json | jq -r 'select(.level == "fail") | .type'`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) (err error) {
			if deadlocks {
				return a.deadlocks(c.Context())
			}
			if o.Key, err = keyArgument(o.Key, quoted); err != nil {
				return err
			}
			if o.Key == "" || o.Pings < 1 {
				return usage("want a --key, and at least one of --pings")
			}
			return a.doctor(c.Context(), o)
		},
	}
	c.Flags().StringVar(&o.Key, "key", "latchkey:doctor", "name of a lock, for the rights")
	c.Flags().BoolVar(&deadlocks, "deadlocks", false, "look for locks that wait for each other")
	c.Flags().BoolVar(&quoted, "quoted", false, quotedHelp)
	c.Flags().IntVar(&o.Pings, "pings", 200, "how many questions the latency is measured with")
	return c
}

func (a *app) doctor(ctx context.Context, o checkup.Options) error {
	rdb, err := a.dial()
	if err != nil {
		return err
	}
	defer rdb.Close()
	failed := false
	o.Timeout = max(a.timeout, time.Millisecond)
	o.Report = func(f checkup.Finding) {
		failed = failed || f.Level == checkup.Fail
		a.printFinding(f)
	}
	if err := checkup.Run(ctx, rdb, o); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return a.unanswered(refusal(err))
	}
	if failed {
		return &exit{status: statusFound, event: "fail"}
	}
	return nil
}

func (a *app) printFinding(f checkup.Finding) {
	if a.json() {
		_ = a.print(f)
		return
	}
	text := safe.Lines(f.Text)
	if f.Node != "" {
		text = f.Node + ": " + text
	}
	fmt.Fprintf(a.out, "%-5s %-12s %s\n", f.Level, f.Check, text)
	if f.Type != "" {
		fmt.Fprintf(a.out, "      -> %s\n", safe.Lines(f.Type))
	}
}
