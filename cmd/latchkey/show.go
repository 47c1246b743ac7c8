package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/latchkey-go/latchkey/cmd/latchkey/internal/safe"
	"github.com/latchkey-go/latchkey/console"
	"github.com/latchkey-go/latchkey/redisson"
	"github.com/spf13/cobra"
)

// errNone says that there is no such lock.
var errNone = errors.New("nobody holds it, and nobody waits in a queue")

func (a *app) showCommand() *cobra.Command {
	quoted := false
	c := &cobra.Command{
		Use:   "show KEY",
		Short: "Show who holds a lock, and who waits for it",
		Long: `Show what Redis knows of the lock KEY: its holders, how long each of them has it unless it is renewed, who waits in the queue of a
fair lock, and how many clients listen for its end.

Exit status: 0; 1 if nobody holds it; 65 if the key is that of something else; 69 for no answer, and 77 if Redis refuses.`,
		Example: `  latchkey show order:42
  latchkey show order:42 -o json | jq -r '.holders[].who.host'`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeKeys,
		RunE: func(c *cobra.Command, args []string) error {
			key, err := keyArgument(args[0], quoted)
			if err != nil {
				return err
			}
			return a.show(c.Context(), key)
		},
	}
	c.Flags().BoolVar(&quoted, "quoted", false, quotedHelp)
	return c
}

func (a *app) show(ctx context.Context, key string) error {
	client, done, err := a.open()
	if err != nil {
		return err
	}
	defer done()
	o, err := a.inspect(ctx, client, key)
	if err != nil {
		return err
	}
	if a.json() {
		err = a.print(document(o))
	} else {
		describe(a.out, o)
	}
	return errors.Join(err, nothing(o))
}

// inspect asks for one object. A key is no mistake of the server's.
func (a *app) inspect(ctx context.Context, client *redisson.Client, key string) (redisson.Object, error) {
	if key == "" {
		return redisson.Object{}, usage("an empty KEY is no lock's")
	}
	o, err := client.Inspect(ctx, key)
	switch {
	case err != nil:
		return o, a.unanswered(err)
	case o.Type == redisson.TypeOther:
		return o, faulty(fmt.Errorf("%s is the key of something else, and no lock", safe.Cut(key, 200)))
	}
	return o, nil
}

// nothing is the error for an object that there is not.
func nothing(o redisson.Object) error {
	if o.Type != redisson.TypeNone {
		return nil
	}
	return &exit{statusFound, "none", fmt.Errorf("%s: %w", safe.Cut(o.Key, 200), errNone)}
}

// describe prints an object on several lines.
func describe(w io.Writer, o redisson.Object) {
	line := func(name, format string, args ...any) {
		fmt.Fprintf(w, "  %-9s %s\n", name, fmt.Sprintf(format, args...))
	}
	fmt.Fprintln(w, safe.Text(o.Key))
	line("kind", "%s", console.KindOf(o))
	if o.Type != redisson.TypeNone {
		line("rest", "%s", rest(o.TTL))
	}
	if counts(o.Type) {
		line("permits", "%d", o.Permits)
	}
	for _, h := range o.Holders {
		line("holder", "%s", describeHolder(h))
	}
	if more := o.HolderCount - int64(len(o.Holders)); more > 0 {
		line("", "and %d more", more)
	}
	for i, w := range o.Queue {
		text := called(w.ID, w.Who)
		if !w.Until.IsZero() {
			text += ", counts as dead after " + w.Until.Format(time.RFC3339)
		}
		line(fmt.Sprintf("queue %d", i+1), "%s", text)
	}
	if more := o.QueueLength - int64(len(o.Queue)); more > 0 {
		line("", "and %d more", more)
	}
	line("listeners", "%d", o.Listeners)
	if o.Token > 0 {
		line("token", "%d", o.Token)
	}
}

func describeHolder(h redisson.Holder) string {
	parts := []string{called(h.ID, h.Who)}
	add := func(before, text string) { // a text that may be a stranger's
		if text != "" {
			parts = append(parts, before+safe.Cut(text, 200))
		}
	}
	if h.Who != (redisson.Identity{}) {
		parts = append(parts, fmt.Sprintf("version %s, up since %s, %s", safe.Cut(h.Who.Version, 40), h.Who.Since.Format(time.RFC3339), safe.Cut(h.ID, 60)))
	}
	if a := h.About; a != nil {
		add("by ", a.For)
		if !a.Since.IsZero() {
			add("has it since ", a.Since.Format(time.RFC3339))
		}
		add("trace ", a.Trace)
		for _, key := range a.Waits {
			add("waits for ", key)
		}
	}
	sign, _ := console.Sign(&h, time.Now())
	add("", sign)
	if h.Write {
		add("", "writes")
	}
	if h.Count > 1 {
		add("", fmt.Sprintf("%d holds", h.Count))
	}
	left := "for " + rest(h.Lease)
	if h.Lease < 0 {
		left = "without an end"
	}
	return strings.Join(append(parts, left), ", ")
}

// completeKeys offers the keys of locks to a shell, as far as they come at once.
func (a *app) completeKeys(c *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	const most, patience = 100, time.Second
	if len(args) > 0 || a.check() != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	client, done, err := a.open()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	defer done()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var keys []string
	for o, err := range client.Objects(ctx, asPattern.Replace(begun)+"*") {
		if err != nil || len(keys) == most {
			break
		}
		if key := safe.Text(o.Key); key == o.Key { // a shell's line is no place for others
			keys = append(keys, key)
		}
	}
	return keys, cobra.ShellCompDirectiveNoFileComp
}

// asPattern has a text match itself in a pattern of SCAN.
var asPattern = strings.NewReplacer(`*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`, `\`, `\\`)
