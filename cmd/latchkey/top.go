package main

import (
	"cmp"
	"context"
	"math"
	"strings"
	"time"

	"github.com/latchkey-go/latchkey/internal/clock"
	"github.com/latchkey-go/latchkey/redisson"
	"github.com/spf13/cobra"
)

// pace adds the flag that waives the rests of a search.
func (a *app) pace(c *cobra.Command) {
	c.Flags().BoolVar(&a.fast, "fast", false, "take all of Redis' time that there is, and not a tenth of it")
}

// The costs of a search for a server, as Redis 7 reports them in INFO commandstats on a usual machine: of a key at
// which three passes look, and of a question about a hundred objects. Within a script, there is no clock that goes on
// in all versions. A restFrom of work is worth a rest.
const (
	keyCost      = 3 * time.Microsecond
	questionCost = 3 * time.Millisecond
	restFrom     = 20 * time.Millisecond
)

// rests reports the progress of a search to look, and makes it take a tenth of Redis' time.
func (a *app) rests(ctx context.Context, look func(redisson.Progress)) redisson.SearchOption {
	var last redisson.Progress
	var owed time.Duration
	return redisson.OnProgress(func(now redisson.Progress) {
		look(now)
		owed += time.Duration(now.Keys-last.Keys)*keyCost + time.Duration(now.Questions-last.Questions)*questionCost
		if last = now; owed > restFrom && !a.fast {
			clock.Sleep(ctx, 9*owed)
			owed = 0
		}
	})
}

func (a *app) topCommand() *cobra.Command {
	limit, by := 20, "waiting"
	c := &cobra.Command{
		Use:   "top [PATTERN]",
		Short: "List the locks that are most waited for, or oldest",
		Long: `List those of the locks whose keys match PATTERN that are waited for most, or with --by age those that are held longest, the most first. All are
looked at once. The columns are those of ls, and AGE, which is how long a lock has been held. Where that is not known it is -, and with --by age
those locks come last, in the order in which they are waited for.

Exit status: 0, also if there are none; 69 for no answer, and 77 if Redis refuses.`,
		Example: `  latchkey top
  latchkey top --by age --limit 5 -o json 'order:*' | jq -r .key`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			order, ok := map[string]order{"waiting": waitedFirst, "age": oldestFirst(heldSince)}[by]
			if limit < 1 || !ok {
				return usage("want a --limit above 0, and --by waiting or age")
			}
			return a.list(c.Context(), strings.Join(args, ""), 0, &table{app: a, order: order, most: limit})
		},
	}
	c.Flags().IntVar(&limit, "limit", limit, "how many locks to list")
	c.Flags().StringVar(&by, "by", by, "which come first: waiting or age")
	_ = c.RegisterFlagCompletionFunc("by", cobra.FixedCompletions([]string{"waiting", "age"}, cobra.ShellCompDirectiveNoFileComp))
	a.pace(c)
	return c
}

// order is that of a list, as slices.SortFunc has it.
type order func(a, b redisson.Object) int

func byKey(a, b redisson.Object) int { return strings.Compare(a.Key, b.Key) }

func waitedFirst(a, b redisson.Object) int {
	return cmp.Or(cmp.Compare(waiting(b), waiting(a)), byKey(a, b))
}

// oldestFirst has those last of which it is not known since when they are held.
func oldestFirst(since func(redisson.Object) time.Time) order {
	at := func(o redisson.Object) int64 {
		if t := since(o); !t.IsZero() {
			return t.UnixNano()
		}
		return math.MaxInt64
	}
	return func(a, b redisson.Object) int { return cmp.Or(cmp.Compare(at(a), at(b)), waitedFirst(a, b)) }
}

// heldSince is since when a lock is held, as the program says that has held it longest, and zero where none says so.
func heldSince(o redisson.Object) (oldest time.Time) {
	for _, h := range o.Holders {
		if h.About != nil && !h.About.Since.IsZero() && (oldest.IsZero() || h.About.Since.Before(oldest)) {
			oldest = h.About.Since
		}
	}
	return oldest
}

// age is how long a lock has been held, for people.
func age(o redisson.Object) string {
	since := heldSince(o)
	if since.IsZero() {
		return "-"
	}
	return rest(max(0, time.Since(since)))
}
