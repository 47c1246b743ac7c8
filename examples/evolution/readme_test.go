package evolution

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	heading  = regexp.MustCompile(`(?m)^## \d+\. .*\[(.+)\]\((.+)/main\.go\)$`)
	named    = regexp.MustCompile("`(Test\\w+)`")
	declared = regexp.MustCompile(`(?m)^func (Test[A-Z]\w*)\(t `)
	closes   = regexp.MustCompile(`(?m)^\tCloses: +\[\]play\.Play\{(.*)\}`)
	holes    = regexp.MustCompile(`(?m)^\tHoles: +\[\]play\.Play\{(.*)\}`)
)

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// steps are the folders of the walk, in its order.
func steps(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob("[0-9][0-9]-*")
	if err != nil || len(found) != 10 {
		t.Fatalf("the steps are %q, %v; want 10", found, err)
	}
	return found
}

// The README has a part for each step, in order, and each names the tests of its step and no others.
func TestReadmeNamesEachTestOfEachStep(t *testing.T) {
	readme := read(t, "README.md")
	parts := heading.FindAllStringSubmatchIndex(readme, -1)
	if len(parts) != len(steps(t)) {
		t.Fatalf("the README has %d steps, want %d", len(parts), len(steps(t)))
	}
	for i, step := range steps(t) {
		end := len(readme)
		if i+1 < len(parts) {
			end = parts[i+1][0]
		} else if next := strings.Index(readme[parts[i][1]:], "\n## "); next >= 0 {
			end = parts[i][1] + next
		}
		if got := readme[parts[i][4]:parts[i][5]]; got != step {
			t.Errorf("step %d of the README is %s, want %s", i+1, got, step)
		}
		got := names(named, readme[parts[i][0]:end])
		if want := names(declared, read(t, filepath.Join(step, "main_test.go"))); !slices.Equal(got, want) {
			t.Errorf("step %s: the README names %q, the tests are %q", step, got, want)
		}
	}
}

func names(pattern *regexp.Regexp, text string) (all []string) {
	for _, m := range pattern.FindAllStringSubmatch(text, -1) {
		all = append(all, m[1])
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Each step closes the holes of the one before, and the last one has none.
func TestEachStepClosesTheHolesOfTheLast(t *testing.T) {
	open := ""
	for _, step := range steps(t) {
		text := read(t, filepath.Join(step, "main.go"))
		if got := first(closes, text); got != open {
			t.Errorf("step %s closes %q, want %q", step, got, open)
		}
		open = first(holes, text)
	}
	if open != "" {
		t.Errorf("the last step leaves %q open", open)
	}
}

func first(pattern *regexp.Regexp, text string) string {
	if m := pattern.FindStringSubmatch(text); m != nil {
		return m[1]
	}
	return ""
}
