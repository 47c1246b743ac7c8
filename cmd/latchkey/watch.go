package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/latchkey-go/latchkey/cmd/latchkey/internal/safe"
	"github.com/latchkey-go/latchkey/redisson"
	"github.com/spf13/cobra"
	"golang.org/x/term"
)

func (a *app) watchCommand() *cobra.Command {
	interval, limit := time.Second, 0
	c := &cobra.Command{
		Use:   "watch [PATTERN]",
		Short: "Follow the locks as they are taken and freed",
		Long: `Look for the locks whose keys match PATTERN again and again. On a terminal, show them as a table. Otherwise, and with -o json, print a line
when one is held, has other holders or waiters, or is free again. What happens between two looks is not seen. Where a search takes long,
most looks are at the locks that it has found: searches take a tenth of the time at most. Looks take a tenth of Redis' time at most, without --fast, so
they are further apart than --interval where there are very many locks.

While Redis does not answer, watch says so and goes on trying. A signal ends it, with 128 and its number as the exit status;
64 is for a mistake in the arguments, and 77 if Redis refuses.`,
		Example: `  latchkey watch 'order:*'
  latchkey watch --interval 5s -o json | jq -r 'select(.event == "held") | .object.key'`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if interval <= 0 || limit < 1 {
				return usage("want an --interval and a --limit above 0")
			}
			w := &watch{app: a, pattern: strings.Join(args, ""), limit: limit, live: !a.json() && term.IsTerminal(int(a.out.Fd()))}
			return w.run(c.Context(), interval)
		},
	}
	c.Flags().DurationVar(&interval, "interval", interval, "time from one look to the next")
	c.Flags().IntVar(&limit, "limit", 10000, "how many locks to follow")
	a.pace(c)
	return c
}

// searchShare is how many times as long as a search took it is until the next one.
const searchShare = 9

// longestRest is how long it is until the next search at most: one that takes long has rested itself.
const longestRest = 30 * time.Second

// watch is a "latchkey watch".
type watch struct {
	*app
	pattern string
	limit   int
	live    bool // on a terminal

	seen   map[string]redisson.Object // at the last complete look
	due    time.Time                  // the next search
	silent time.Time                  // since when Redis has not answered, or zero
	cut    bool                       // it was said that there are more locks than are followed
}

func (w *watch) run(ctx context.Context, interval time.Duration) error {
	client, done, err := w.open()
	if err != nil {
		return err
	}
	defer done()
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		if err := w.look(ctx, client); err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// look asks once. Its error is one that does not pass.
func (w *watch) look(ctx context.Context, client *redisson.Client) error {
	read := w.again
	if !time.Now().Before(w.due) {
		read = w.search
	}
	found, failed := read(ctx, client)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if failed != nil {
		return w.outage(failed)
	}
	if !w.silent.IsZero() {
		if !w.live {
			w.say("answers", 0, fmt.Sprintf("%s answers again after %v", w.place(), time.Since(w.silent).Round(time.Second)), nil)
		}
		w.silent = time.Time{}
	}
	if w.live {
		w.draw(found)
	} else if err := w.tell(found); err != nil {
		return err
	}
	w.seen = found
	return nil
}

// search finds the locks among all keys. These can be very many, so most looks are not a search.
func (w *watch) search(ctx context.Context, client *redisson.Client) (found map[string]redisson.Object, failed error) {
	begun, found := time.Now(), map[string]redisson.Object{}
	for o, err := range client.Objects(ctx, w.pattern, w.rests(ctx, func(redisson.Progress) {})) {
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		if len(found) == w.limit {
			if !w.cut {
				w.say("limit", 0, fmt.Sprintf("there are more than the %d locks that are followed: give a PATTERN, or --limit", w.limit), nil)
			}
			w.cut = true
			break
		}
		found[o.Key] = o
	}
	if failed == nil {
		now := time.Now()
		w.due = now.Add(min(searchShare*now.Sub(begun), longestRest))
	}
	return found, failed
}

// again looks at the locks that were there at the last look.
func (w *watch) again(ctx context.Context, client *redisson.Client) (found map[string]redisson.Object, failed error) {
	found = map[string]redisson.Object{}
	for o, err := range client.InspectKeys(ctx, slices.Collect(maps.Keys(w.seen)), w.rests(ctx, func(redisson.Progress) {})) {
		if err != nil {
			failed = errors.Join(failed, err)
		} else if o.Type == w.seen[o.Key].Type || len(o.Holders) > 0 {
			found[o.Key] = o
		}
	}
	return found, failed
}

// outage says once that Redis does not answer. A refusal is returned, as it is for good.
func (w *watch) outage(err error) error {
	if exitOf(err).status != statusNoAnswer {
		return err
	}
	if !w.silent.IsZero() {
		return nil
	}
	w.silent = time.Now()
	e := exitOf(w.unanswered(err)) // which takes a while
	w.say(e.event, 0, safe.Lines(e.Error())+"; trying again", nil)
	return nil
}

// draw shows as many locks as there is room for.
func (w *watch) draw(found map[string]redisson.Object) {
	width, height, err := term.GetSize(int(w.out.Fd()))
	if err != nil || width < 1 || height < 4 {
		width, height = 80, 24
	}
	keys := slices.Sorted(maps.Keys(found))
	var text bytes.Buffer
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprint(table, heading)
	for _, key := range keys[:min(len(keys), height-3)] {
		fmt.Fprint(table, row(found[key]))
	}
	_ = table.Flush()
	var b strings.Builder
	fmt.Fprintf(&b, "\x1b[H%s  %d locks  %s\x1b[K\n", time.Now().Format(time.TimeOnly), len(found), safe.Cut(w.pattern, keyWidth))
	for line := range strings.Lines(text.String()) {
		line = strings.TrimSuffix(line, "\n")
		if r := []rune(line); len(r) > width {
			line = string(r[:width-1]) + "…"
		}
		fmt.Fprintf(&b, "%s\x1b[K\n", line)
	}
	b.WriteString("\x1b[J")
	fmt.Fprint(w.out, b.String())
}

// tell prints the differences from the last look.
func (w *watch) tell(found map[string]redisson.Object) error {
	for _, key := range slices.Sorted(maps.Keys(found)) {
		o := found[key]
		before, known := w.seen[key]
		switch {
		case !known, !slices.Equal(holderIDs(before), holderIDs(o)):
			if err := w.event("held", o); err != nil {
				return err
			}
		case waiting(before) != waiting(o):
			if err := w.event("waiting", o); err != nil {
				return err
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(w.seen)) {
		if _, there := found[key]; !there && len(found) < w.limit {
			was := w.seen[key]
			if err := w.event("free", redisson.Object{Key: key, Type: was.Type, Mode: was.Mode, Token: was.Token}); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *watch) event(event string, o redisson.Object) error {
	if w.json() {
		return w.print(map[string]any{"time": time.Now(), "event": event, "object": document(o)})
	}
	text := fmt.Sprintf("%s  %-7s  %s", time.Now().Format(time.TimeOnly), event, safe.Cut(o.Key, keyWidth))
	switch event {
	case "held":
		text += "  by " + held(o)
	case "waiting":
		text += fmt.Sprintf("  %d", waiting(o))
	}
	_, err := fmt.Fprintln(w.out, text)
	return err
}
