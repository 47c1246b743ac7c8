// Package doctest types the commands of a document into a shell, against a Redis of their own, and compares what they print with what
// the document says they do. It also holds the code in a document against the files that it is quoted from.
package doctest

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write what the commands in the documents print into them")

// Pages returns the documents that match the patterns, and fails the test if there are none for one of them.
func Pages(t *testing.T, patterns ...string) (pages []string) {
	t.Helper()
	for _, pattern := range patterns {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("no documents %s: %v", pattern, err)
		}
		pages = append(pages, found...)
	}
	return pages
}

// quoted is a block of code. Before it stands, in a comment, which file it comes from.
var quoted = regexp.MustCompile("(?ms)(?:^ *<!-- ([^\n]*) -->\n)?^( *)```(?:go|java|proto)\n(.*?)^ *```$")

// Quotes fails the test for code in the pages that does not stand in the file which the comment before it names, by its path below root. A
// block of several parts has lines of "// …" between them. Code without such a comment is not allowed.
func Quotes(t *testing.T, root string, pages ...string) {
	t.Helper()
	for _, page := range pages {
		for _, wrong := range misquotes(read(t, page), func(file string) (string, error) {
			text, err := os.ReadFile(filepath.Join(root, file))
			return string(text), err
		}) {
			t.Errorf("%s %s", page, wrong)
		}
	}
}

// misquotes returns the mistakes in the code of a page.
func misquotes(page string, open func(file string) (string, error)) (wrong []string) {
	for _, m := range quoted.FindAllStringSubmatch(page, -1) {
		if m[1] == "" {
			wrong = append(wrong, "quotes code without the comment that says from which file:\n"+m[3])
			continue
		}
		source, err := open(m[1])
		if err != nil {
			wrong = append(wrong, err.Error())
		}
		for part := range strings.SplitSeq(m[3], "// …\n") {
			if !strings.Contains(unindented(source), unindented(part)) {
				wrong = append(wrong, "says that this stands in "+m[1]+", and it doesn't:\n"+part)
			}
		}
	}
	return wrong
}

var indent = regexp.MustCompile(`(?m)^[ \t]+`)

// unindented is code without the space before and after it.
func unindented(code string) string {
	return strings.TrimSpace(indent.ReplaceAllString(code, ""))
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
