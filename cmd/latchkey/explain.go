package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/latchkey-go/latchkey/cmd/latchkey/internal/safe"
	"github.com/latchkey-go/latchkey/keyexpr"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/spf13/cobra"
)

// explanation is the result of a template for facts.
type explanation struct {
	Template string     `json:"template"`
	Shape    string     `json:"shape"`
	Reads    []string   `json:"reads"`
	Applies  bool       `json:"applies"`
	Keys     []keyState `json:"keys"`
}

// keyState is a key, and its state in Redis if that is known.
type keyState struct {
	Key       safe.String `json:"key"`
	State     string      `json:"state,omitempty"` // free, held, or why that is not known
	Remaining float64     `json:"remaining_seconds,omitempty"`
}

type explainFlags struct {
	facts  string
	when   string
	state  bool
	oneKey bool
	kind   kindValue
	limit  int
}

func (a *app) explainCommand() *cobra.Command {
	var f explainFlags
	c := &cobra.Command{
		Use:   "explain TEMPLATE",
		Short: "Show the keys that a template makes of facts",
		Long: `Parse TEMPLATE as a guard does, and show the keys that it makes of the facts in a file.

The file has one JSON object with a member for each root that the template names, such as req, path or header. The members
of path, query, header, cookie, form and md are looked up by name, as the middleware does it; header and md know no case. Whole
numbers are integers. A program's own types are not known here, so that mistakes in the names of fields are found when a key is
made and not before; a field is called as in the file. The hash of an object is refused, as the name of its type is a part of it.

With --state, Redis is asked if the keys are free now for a lock of --kind. No lock is taken.

Exit status: 0, or 65 if the template, the condition or the facts are at fault, 64 for a mistake in the arguments, 69 for no
answer from Redis.`,
		Example: `  latchkey explain 'order:#{req.OrderID}' --facts request.json
  echo '{"path": {"id": "7"}, "header": {"X-Tenant": "acme"}}' | latchkey explain '#{header["X-Tenant"]}:#{path.id}' --facts -`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error { return a.explain(c.Context(), args[0], f) },
	}
	c.Flags().StringVar(&f.facts, "facts", "", "file with the facts in JSON; - is the standard input")
	c.Flags().StringVar(&f.when, "when", "", "the guard's condition")
	c.Flags().BoolVar(&f.state, "state", false, "ask Redis if the keys are free")
	c.Flags().BoolVar(&f.oneKey, "one-key", false, "the template reads no facts on purpose")
	c.Flags().Var(&f.kind, "kind", "for --state: plain, fair, read, write, permit, fenced or spin")
	c.Flags().IntVar(&f.limit, "limit", 1, "for --state with --kind permit")
	_ = c.RegisterFlagCompletionFunc("kind", cobra.FixedCompletions(kindNames(), cobra.ShellCompDirectiveNoFileComp))
	return c
}

func (a *app) explain(ctx context.Context, text string, f explainFlags) error {
	roots, facts, err := a.facts(f.facts)
	if err != nil {
		return err
	}
	e, err := explained(ctx, text, f, roots, facts)
	if err != nil {
		return fault(err)
	}
	if f.state {
		if err := a.states(ctx, e.Keys, f); err != nil {
			return err
		}
	}
	if a.json() {
		return a.print(e)
	}
	fmt.Fprintf(a.out, "template:  %s\nshape:     %s\nreads:     %s\n", safe.Text(e.Template), safe.Text(e.Shape), strings.Join(e.Reads, ", "))
	if !e.Applies {
		fmt.Fprintln(a.out, "no lock:   the condition is false")
	}
	for _, k := range e.Keys {
		fmt.Fprintf(a.out, "key:       %s\n", strings.TrimRight(safe.Text(string(k.Key))+"  "+k.String(), " "))
	}
	return nil
}

// String is the state of a key in words.
func (k keyState) String() string {
	if k.Remaining > 0 {
		return fmt.Sprintf("%s, for another %.3gs if it is not renewed", k.State, k.Remaining)
	}
	return k.State
}

func explained(ctx context.Context, text string, f explainFlags, roots keyexpr.Roots, facts keyexpr.Facts) (*explanation, error) {
	var opts []keyexpr.Option
	if f.oneKey {
		opts = append(opts, keyexpr.OneKey())
	}
	t, err := keyexpr.Parse(text, roots, opts...)
	if err != nil {
		return nil, err
	}
	e := &explanation{Template: text, Shape: t.Shape(), Reads: t.Fields(), Applies: true, Keys: []keyState{}}
	if f.when != "" {
		when, err := keyexpr.ParseCondition(f.when, roots)
		if err != nil {
			return nil, err
		}
		if err := constant(f.when, roots); err != nil {
			return nil, err
		}
		if e.Applies, err = when.Eval(ctx, facts); err != nil || !e.Applies {
			return e, err
		}
	}
	keys, err := t.Expand(ctx, facts)
	if err != nil {
		return e, err
	}
	if others, err := t.Expand(ctx, marked(facts)); err != nil || !slices.Equal(keys, others) {
		return e, errObject
	}
	for _, key := range keys {
		e.Keys = append(e.Keys, keyState{Key: safe.String(key)})
	}
	return e, nil
}

// constant refuses a condition that a guard refuses at start. The program may have other types than the file, such as a pointer
// where that has a text, so only what is constant with any types counts, and not what needs the types that it has.
func constant(text string, roots keyexpr.Roots) error {
	untyped := make(keyexpr.Roots, len(roots))
	for name, root := range roots {
		if untyped[name] = (keyexpr.Root{}); slices.Contains(lookups, name) {
			untyped[name] = root
		}
	}
	if when, err := keyexpr.ParseCondition(text, untyped); err == nil {
		if holds, ok := when.Constant(); ok {
			return fmt.Errorf("when: %s is %t for every call, as nothing of the request makes a difference: a guard refuses it", text, holds)
		}
	}
	return nil
}

// fault shows where in a text a mistake is.
func fault(err error) error {
	if e, ok := errors.AsType[*keyexpr.Error](err); ok {
		return faulty(errors.New(e.Detail()))
	}
	return faulty(err)
}

// states asks Redis for each key.
func (a *app) states(ctx context.Context, keys []keyState, f explainFlags) error {
	c, done, err := a.open()
	if err != nil {
		return err
	}
	defer done()
	for i := range keys {
		err := c.Peek(ctx, lock.Request{Key: string(keys[i].Key), Kind: f.kind.Kind, Limit: f.limit})
		switch busy, held := errors.AsType[*lock.BusyError](err); {
		case held:
			keys[i].State, keys[i].Remaining = "held", busy.Remaining.Seconds()
		case err == nil:
			keys[i].State = "free"
		case errors.Is(err, lock.ErrUnsupported):
			keys[i].State = err.Error()
		default:
			return a.unanswered(err)
		}
	}
	return nil
}

// lookups are the roots whose members the adapters look up by name.
var lookups = []string{"path", "query", "header", "cookie", "form", "md"}

// mostFacts bounds a file with facts.
const mostFacts = 16 << 20

// facts reads a file of facts. No file has none.
func (a *app) facts(file string) (keyexpr.Roots, keyexpr.Facts, error) {
	r := a.in
	switch file {
	case "":
		return keyexpr.Roots{}, func(string) (any, error) { return nil, nil }, nil
	case "-":
	default:
		opened, err := os.Open(file)
		if err != nil {
			return nil, nil, faulty(err)
		}
		defer opened.Close()
		r = opened
	}
	var doc map[string]any
	dec := json.NewDecoder(io.LimitReader(r, mostFacts))
	dec.UseNumber()
	if err := dec.Decode(&doc); err != nil {
		return nil, nil, faulty(fmt.Errorf("facts: want one JSON object with a member for each root: %w", err))
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, nil, faulty(errors.New("facts: there is more than one JSON object, or it is larger than 16 MiB"))
	}
	return offer(doc)
}
