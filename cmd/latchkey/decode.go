package main

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/latchkey-go/latchkey/cmd/latchkey/internal/keyname"
	"github.com/latchkey-go/latchkey/cmd/latchkey/internal/safe"
	"github.com/latchkey-go/latchkey/keyexpr"
	"github.com/spf13/cobra"
)

// decoded is a meaning, with what a template has put into the name.
type decoded struct {
	keyname.Meaning
	Names []named `json:"names"`
}

// named is a name that an object may have.
type named struct {
	Name   safe.String   `json:"name"`
	Values []safe.String `json:"values,omitempty"` // of the template's holes
}

func (a *app) decodeCommand() *cobra.Command {
	var template string
	var quoted bool
	c := &cobra.Command{
		Use:   "decode KEY",
		Short: "Say what a key or channel in Redis is",
		Long: `Say which lock a key or channel in Redis belongs to, and what it is for. Redis is not asked.

With --template, the values are shown that a guard's template has put into the name of the lock. Escapes are undone, so they are
what the request had.

Exit status: 0, 64 for a mistake in the arguments, or 65 if the template is faulty or has not made that key.`,
		Example: `  latchkey decode 'redisson_lock_queue:{order:42}'
  latchkey decode 'acme%3Anorth:42' --template '#{header.Tenant}:#{req.OrderID}'
  latchkey decode --quoted '"order:\x00"'`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			key, err := keyArgument(args[0], quoted)
			if err != nil {
				return err
			}
			return a.decode(key, template)
		},
	}
	c.Flags().StringVar(&template, "template", "", "the guard's template")
	c.Flags().BoolVar(&quoted, "quoted", false, quotedHelp)
	return c
}

const quotedHelp = "KEY is a quoted string of Go, as names are shown that a terminal can't show"

// keyArgument is a key as the user has written it.
func keyArgument(arg string, quoted bool) (string, error) {
	if !quoted {
		return arg, nil
	}
	key, err := strconv.Unquote(arg)
	if err != nil {
		return "", usage("--quoted: KEY is no quoted string; its quotes belong to it, so put others around them: '\"…\"'")
	}
	return key, nil
}

func (a *app) decode(key, template string) error {
	var match func(string) ([]string, bool)
	if template != "" {
		t, err := anyFacts(template)
		if err != nil {
			return fault(err)
		}
		match = t.Match
	}
	all, matched := meanings(key, match)
	if a.json() {
		if err := a.print(map[string]any{"key": safe.String(key), "meanings": all}); err != nil {
			return err
		}
	} else {
		a.printMeanings(key, all)
	}
	if match != nil && !matched {
		return faulty(fmt.Errorf("the template has not made this key, or it can't be read back, as those with raw or of more than 512 bytes"))
	}
	return nil
}

// meanings returns the things that a key can be. With a template, they are those whose name it has made, if
// there are any.
func meanings(key string, match func(string) ([]string, bool)) (all []decoded, matched bool) {
	var read []decoded
	for _, m := range keyname.Decode(key) {
		d, r := decoded{Meaning: m, Names: []named{}}, decoded{Meaning: m}
		for _, name := range m.Of {
			n := named{Name: safe.String(name)}
			d.Names = append(d.Names, n)
			if match == nil {
				continue
			}
			if values, ok := match(name); ok {
				for _, v := range values {
					n.Values = append(n.Values, safe.String(v))
				}
				r.Names = append(r.Names, n)
			}
		}
		if all = append(all, d); len(r.Names) > 0 {
			read = append(read, r)
		}
	}
	if len(read) > 0 {
		return read, true
	}
	return all, false
}

func (a *app) printMeanings(key string, all []decoded) {
	fmt.Fprintf(a.out, "%s\n", safe.Text(key))
	for i, d := range all {
		if i > 0 {
			fmt.Fprintln(a.out, "or")
		}
		row := func(name, value string) {
			if value != "" {
				fmt.Fprintf(a.out, "  %-8s %s\n", name, value)
			}
		}
		kind := "is"
		if d.Channel {
			kind = "channel"
		}
		row(kind, d.What)
		row("type", d.Type)
		for j, n := range d.Names {
			row([]string{"of", "or of"}[min(j, 1)], safe.Text(string(n.Name)))
			for k, v := range n.Values {
				row("value "+strconv.Itoa(k+1), safe.Text(string(v)))
			}
		}
		row("client", d.Client)
		row("number", d.Number)
		row("ends", d.Ends)
	}
}

// anyFacts parses a template whose program is not known: each name that it uses is a root of an unknown type.
func anyFacts(text string) (*keyexpr.Template, error) {
	roots := keyexpr.Roots{}
	for _, name := range append([]string{"req", "method", "host", "route", "body"}, identifiers(text)...) {
		roots[name] = keyexpr.Root{}
	}
	for _, name := range lookups {
		roots[name] = keyexpr.AnyName()
	}
	return keyexpr.Parse(text, roots, keyexpr.OneKey())
}

var (
	identifier = regexp.MustCompile(`[A-Za-z_][A-Za-z0-9_]*`)
	literal    = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|` + "`[^`]*`")
	reserved   = []string{"true", "false", "nil", "not", "in", "or", "and", "matches", "contains", "startsWith", "endsWith", "let", "if", "else"}
)

// identifiers are the names in the holes of a template that can be roots. One too many does no harm.
func identifiers(template string) (names []string) {
	for _, hole := range strings.Split(template, "#{")[1:] {
		hole = literal.ReplaceAllString(hole, "0")
		end := closing(hole)
		for _, at := range identifier.FindAllStringIndex(hole[:end], -1) {
			name, before, after := hole[at[0]:at[1]], hole[:at[0]], strings.TrimLeft(hole[at[1]:end], " ")
			member := strings.HasSuffix(before, ".") || strings.HasSuffix(before, "#")
			digits := before != "" && before[len(before)-1] >= '0' && before[len(before)-1] <= '9'
			if !member && !digits && !strings.HasPrefix(after, "(") && !slices.Contains(reserved, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// closing is where a hole ends.
func closing(hole string) int {
	depth := 0
	for i, b := range []byte(hole) {
		switch b {
		case '{':
			depth++
		case '}':
			if depth--; depth < 0 {
				return i
			}
		}
	}
	return len(hole)
}
