package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/latchkey-go/latchkey/cmd/latchkey-gen/internal/gen"
)

const help = `usage: latchkey-gen [-check] [packages]

It writes the guarded wrappers of what directives //latchkey:guard stand above, in the packages
that are named as for the go command, or in that of the current folder. For more, type

	go doc github.com/latchkey-go/latchkey/cmd/latchkey-gen

`

func main() { os.Exit(run(os.Args[1:], os.Stderr)) }

// The exit statuses.
const (
	good  = 0
	bad   = 1 // a mistake in a directive, or a file that is out of date
	usage = 2
)

func run(args []string, out io.Writer) int {
	flags := flag.NewFlagSet("latchkey-gen", flag.ContinueOnError)
	flags.SetOutput(out)
	check := flags.Bool("check", false, "write nothing, and exit with 1 if a file is out of date")
	flags.Usage = func() {
		_, _ = fmt.Fprint(out, help)
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return good
		}
		return usage
	}
	patterns := flags.Args()
	for _, p := range patterns {
		if strings.HasSuffix(p, ".go") {
			_, _ = fmt.Fprintf(out, "%s is a file: give packages, such as . or ./...\n", p)
			return usage
		}
	}
	if len(patterns) == 0 {
		patterns = []string{"."}
	}
	files, err := gen.Generate(".", patterns...)
	if err != nil {
		_, _ = fmt.Fprintln(out, err)
		return bad
	}
	return finish(files, *check, out)
}

// finish writes the files, or reports those that are stale.
func finish(files []gen.File, check bool, out io.Writer) int {
	status := good
	for _, f := range files {
		if !check {
			if err := f.Write(); err != nil {
				_, _ = fmt.Fprintln(out, err)
				status = bad
			}
		} else if f.Stale != "" {
			_, _ = fmt.Fprintf(out, "%s: stale, %s: run go generate\n", gen.Relative(".", f.Path), f.Stale)
			status = bad
		}
	}
	return status
}
