package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// tally is what became of the tests of a run, subtests included.
type tally struct {
	passed, failed int
	skipped        map[string]int // by reason
	output         map[string]string
	broken         []string // the tests that failed, and the packages, as they are called in output
}

// event is a line of go test -json.
type event struct {
	Action, Package, Test, Output string
}

func (e event) name() string { return strings.TrimSuffix(e.Package+" "+e.Test, " ") }

// read adds up the events of a run.
func read(events io.Reader) (*tally, error) {
	t := &tally{skipped: map[string]int{}, output: map[string]string{}}
	for d := json.NewDecoder(events); ; {
		var e event
		if err := d.Decode(&e); errors.Is(err, io.EOF) {
			return t, nil
		} else if err != nil {
			return t, err
		}
		t.add(e)
	}
}

func (t *tally) add(e event) {
	switch name := e.name(); {
	case e.Action == "output":
		t.output[name] += e.Output
	case e.Action == "fail":
		t.broken = append(t.broken, name)
		if e.Test != "" {
			t.failed++
		}
	case e.Test == "":
	case e.Action == "pass":
		t.passed++
		delete(t.output, name)
	case e.Action == "skip":
		t.skipped[reason(t.output[name])]++
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

// failures is what the tests that failed have written.
func (t *tally) failures() string {
	var b strings.Builder
	for _, name := range t.broken {
		b.WriteString(t.output[name])
	}
	return b.String()
}

func (t *tally) String() string {
	n := 0
	var reasons []string
	for _, why := range slices.Sorted(maps.Keys(t.skipped)) {
		n += t.skipped[why]
		reasons = append(reasons, fmt.Sprintf("%d: %s", t.skipped[why], why))
	}
	s := fmt.Sprintf("%d passed, %d skipped", t.passed, n)
	if n > 0 {
		s += " (" + strings.Join(reasons, "; ") + ")"
	}
	return s
}
