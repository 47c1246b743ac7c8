// Package tally adds up what go test -json says.
package tally

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os/exec"
	"regexp"
	"slices"
	"strings"
)

// Tally is what became of the tests of one or more runs, subtests included. Its zero value is one of no run.
type Tally struct {
	Passed, Failed, Skipped int

	reasons map[string]int    // of those that were skipped
	output  map[string]string // of the tests that have not passed, by package and name
	broken  []string          // the tests that failed, and the packages, as they are called in output
}

// event is a line of go test -json.
type event struct {
	Action, Package, Test, Output string
}

func (e event) name() string { return strings.TrimSuffix(e.Package+" "+e.Test, " ") }

// Read adds the events of a run.
func (t *Tally) Read(events io.Reader) error {
	for d := json.NewDecoder(events); ; {
		var e event
		if err := d.Decode(&e); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		t.add(e)
	}
}

// Run runs cmd, which is a go test -json, and adds what it says.
func (t *Tally) Run(cmd *exec.Cmd) error {
	events, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	return cmp.Or(t.Read(events), cmd.Wait())
}

func (t *Tally) add(e event) {
	if t.output == nil {
		t.output, t.reasons = map[string]string{}, map[string]int{}
	}
	switch name := e.name(); {
	case e.Action == "output":
		t.output[name] += e.Output
	case e.Action == "fail":
		t.broken = append(t.broken, name)
		if e.Test != "" {
			t.Failed++
		}
	case e.Test == "":
	case e.Action == "pass":
		t.Passed++
		delete(t.output, name)
	case e.Action == "skip":
		t.Skipped++
		t.reasons[reason(t.output[name])]++
		delete(t.output, name)
	}
}

var skipLine = regexp.MustCompile(`(?m)^ *\w+\.go:\d+: (.*)$`)

// reason is the last line that a test has logged.
func reason(output string) string {
	lines := skipLine.FindAllStringSubmatch(output, -1)
	if len(lines) == 0 {
		return "no reason given"
	}
	return lines[len(lines)-1][1]
}

// crash is what a program writes when it ends in the midst of its tests. It stands in the output of whichever ran then, and that has no
// end.
var crash = regexp.MustCompile(`(?ms)^(panic:|fatal error:|SIG[A-Z]+:|signal:|unexpected fault).*`)

// Failures is what the tests that failed have written, and what the program did that ended before its tests.
func (t *Tally) Failures() string {
	var b strings.Builder
	for _, name := range t.broken {
		b.WriteString(t.output[name])
	}
	for _, name := range slices.Sorted(maps.Keys(t.output)) {
		if !slices.Contains(t.broken, name) {
			b.WriteString(crash.FindString(t.output[name]))
		}
	}
	return b.String()
}

// Reasons are those of the tests that were skipped, each with their number.
func (t *Tally) Reasons() []string {
	var reasons []string
	for _, why := range slices.Sorted(maps.Keys(t.reasons)) {
		reasons = append(reasons, fmt.Sprintf("%d: %s", t.reasons[why], why))
	}
	return reasons
}
