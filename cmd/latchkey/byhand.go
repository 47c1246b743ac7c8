package main

import (
	"context"
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/latchkey-go/latchkey/cmd/latchkey/internal/safe"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson"
	"github.com/spf13/cobra"
)

// account is by whom something is done by hand, and why.
type account struct{ by, reason string }

func (a *app) accountFlags(c *cobra.Command) *account {
	who := &account{}
	name := a.getenv("USER")
	if name == "" {
		name = a.getenv("LOGNAME")
	}
	c.Flags().StringVar(&who.by, "by", name, "your name, for those who will want to ask you")
	c.Flags().StringVar(&who.reason, "reason", "", "why, for the holder's log and for others")
	c.Flags().Lookup("by").DefValue = "$USER"
	return who
}

func (a *app) holdCommand() *cobra.Command {
	var d time.Duration
	var by *account
	c := &cobra.Command{
		Use:   "hold KEY --for TIME",
		Short: "Keep a lock shut by hand, as for maintenance",
		Long: `Take the plain lock KEY for a time, and leave it held: nothing renews it, and free ends it before that. Who holds it and why are in what show
and ls print, and in the errors of programs that find it busy; answers to their callers don't say so.

It waits for nobody: drain what holds the lock before, or free it.

Exit status: 0 if it is held now; 75 if others have it; 69 for no answer, and 77 if Redis refuses.`,
		Example:           `  latchkey hold order:42 --for 1h --reason "moving the ledger, ticket 7"`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeKeys,
		RunE:              func(c *cobra.Command, args []string) error { return a.hold(c.Context(), args[0], d, by) },
	}
	c.Flags().DurationVar(&d, "for", 0, "how long, such as 1h")
	by = a.accountFlags(c)
	return c
}

func (a *app) hold(ctx context.Context, key string, d time.Duration, by *account) error {
	if d < time.Second {
		return usage("--for %v: want 1s or more", d)
	}
	if err := (lock.Request{Key: key}).Validate(); err != nil {
		return usage("%w", err)
	}
	client, done, err := a.open()
	if err != nil {
		return err
	}
	defer done()
	switch err = client.Hold(ctx, key, d, by.by, by.reason); {
	case errors.Is(err, lock.ErrBusy):
		return &exit{statusBusy, "busy", fmt.Errorf("%s is held by others%s", safe.Cut(key, 200), remaining(err))}
	case errors.Is(err, redisson.ErrAccount):
		return usage("--by and --reason: %w", err)
	case err != nil:
		return a.unanswered(err)
	}
	until := time.Now().Add(d).UTC()
	if a.json() {
		return a.print(map[string]any{"held": safe.String(key), "until": until})
	}
	_, err = fmt.Fprintf(a.out, "%s is held until %s; latchkey free ends it before\n", safe.Cut(key, 200), until.Format(time.RFC3339))
	return err
}

// freed is a lock that was freed by hand, in JSON.
type freed struct {
	Time    time.Time     `json:"time"`
	By      safe.String   `json:"by"`
	Reason  safe.String   `json:"reason"`
	Key     safe.String   `json:"key"`
	Holders []safe.String `json:"holders"`
}

func (a *app) freesCommand() *cobra.Command {
	limit := 0
	c := &cobra.Command{
		Use:   "frees",
		Short: "List the locks that were freed by hand, by whom and why",
		Long: `List what was freed by hand, the last first, with free or on the console's page. Redis remembers 1,000. A lock that a program has freed, with
ForceUnlock, or Redisson in Java with forceUnlock, is not among them.

Exit status: 0, also if there are none; 69 for no answer, and 77 if Redis refuses.`,
		Example: `  latchkey frees --limit 5
  latchkey frees -o json | jq -r 'select(.key == "order:42") | .by'`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if limit < 1 {
				return usage("--limit %d: want a number above 0", limit)
			}
			return a.frees(c.Context(), limit)
		},
	}
	c.Flags().IntVar(&limit, "limit", 20, "how many of the last")
	return c
}

func (a *app) frees(ctx context.Context, limit int) error {
	client, done, err := a.open()
	if err != nil {
		return err
	}
	defer done()
	all, err := client.Frees(ctx, limit)
	if err != nil {
		return a.unanswered(err)
	}
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	if !a.json() {
		fmt.Fprint(w, "TIME\tBY\tKEY\tREASON\n")
	}
	for _, f := range all {
		if !a.json() {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", f.Time.UTC().Format(time.RFC3339), safe.Cut(f.Who, 40), safe.Cut(f.Key, keyWidth), safe.Cut(f.Reason, 200))
			continue
		}
		doc := freed{f.Time.UTC(), safe.String(f.Who), safe.String(f.Reason), safe.String(f.Key), []safe.String{}}
		for _, id := range f.Holders {
			doc.Holders = append(doc.Holders, safe.String(id))
		}
		if err := a.print(doc); err != nil {
			return err
		}
	}
	return w.Flush()
}
