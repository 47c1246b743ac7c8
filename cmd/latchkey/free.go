package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/latchkey-go/latchkey/cmd/latchkey/internal/safe"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson"
	"github.com/spf13/cobra"
	"golang.org/x/term"
)

func (a *app) freeCommand() *cobra.Command {
	yes, quoted := false, false
	var by *account
	c := &cobra.Command{
		Use:   "free KEY",
		Short: "Free a lock by hand, whoever holds it",
		Long: `End the lock KEY, and wake one who waits. Clients of Latchkey that hold it are told, and end the context of their work. Those of Redisson
learn of it when they give the lock back, and a process that is stopped when it goes on: until then, two can work under the lock. So look
at the holder before. A lock whose holder has crashed needs no help: it ends with its lease.

Your name and the reason get into the error of the holder, and frees lists them.

Who holds the lock is shown, and you are asked. --yes does not ask, and is needed where the input is no terminal.

Exit status: 0 if it was freed; 1 if nobody held it, you said no, or it has got another holder while you thought about it; 65 if the
key is that of something else; 69 for no answer, and 77 if Redis refuses.`,
		Example: `  latchkey free order:42 --reason "it hangs, ticket 7"
  latchkey free --yes --quoted '"order:\x00"'`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeKeys,
		RunE: func(c *cobra.Command, args []string) error {
			key, err := keyArgument(args[0], quoted)
			if err != nil {
				return err
			}
			return a.free(c.Context(), key, yes, by)
		},
	}
	c.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	c.Flags().BoolVar(&quoted, "quoted", false, quotedHelp)
	by = a.accountFlags(c)
	return c
}

func (a *app) free(ctx context.Context, key string, yes bool, by *account) error {
	if !yes && !term.IsTerminal(int(a.in.Fd())) {
		return usage("the input is no terminal, so there is nobody to ask: add --yes")
	}
	client, done, err := a.open()
	if err != nil {
		return err
	}
	defer done()
	o, err := a.inspect(ctx, client, key)
	if err == nil {
		err = errors.Join(nothing(o), noLock(o))
	}
	if err != nil {
		return err
	}
	if !yes {
		if err := a.confirm(ctx, o); err != nil {
			return err
		}
	}
	f := redisson.Freed{Key: o.Key, Who: by.by, Reason: by.reason}
	if !yes { // and otherwise from whoever has it by now; a free lock with a queue has no holders
		f.Holders = holderIDs(o)
	}
	freed, err := client.Free(ctx, f)
	switch {
	case errors.Is(err, lock.ErrBusy):
		return &exit{statusFound, "changed", fmt.Errorf("not freed: %s has other holders now", safe.Cut(key, 200))}
	case errors.Is(err, redisson.ErrAccount):
		return usage("--by and --reason: %w", err)
	case freed && err != nil:
		a.say("not-noted", 0, safe.Lines(err.Error()), nil)
	case err != nil:
		return a.unanswered(err)
	}
	if !freed {
		return &exit{statusFound, "none", fmt.Errorf("%s: %w", safe.Cut(key, 200), errNone)}
	}
	if a.json() {
		return a.print(map[string]any{"freed": document(o)})
	}
	fmt.Fprintf(a.out, "%s is freed; it was held by %s\n", safe.Cut(key, 200), strings.TrimPrefix(held(o), "by "))
	return nil
}

// confirm asks the user. A yes means the holders that were shown, so they are shown where the question is: the output
// may be a file, or another program that waits for JSON.
func (a *app) confirm(ctx context.Context, o redisson.Object) error {
	describe(a.err, o)
	fmt.Fprint(a.err, "Free it? Its holders may still be at work. [y/N] ")
	answered := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(a.in).ReadString('\n')
		answered <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case answer := <-answered:
		if answer != "y" && answer != "yes" {
			return &exit{statusFound, "refused", errors.New("not freed")}
		}
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// noLock is the error for an object that nobody holds as a whole.
func noLock(o redisson.Object) error {
	switch o.Type {
	case redisson.TypeNone, redisson.TypeLock, redisson.TypeReadWrite:
		return nil
	}
	return faulty(fmt.Errorf("%s is a %v: only locks can be freed", safe.Cut(o.Key, 200), o.Type))
}

func holderIDs(o redisson.Object) (ids []string) {
	for _, h := range o.Holders {
		ids = append(ids, h.ID)
	}
	slices.Sort(ids)
	return ids
}
