package spel

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/latchkey-go/latchkey/keyexpr"
)

// The tables of these tests are files of lines in testdata, with a tab between columns: a text, and what is wanted of it. Lines of
// dashes are headings.

// table returns the lines of a file, in columns, with the heading above each as the last column.
func table(t testing.TB, name string) (rows [][]string) {
	t.Helper()
	file, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	heading := ""
	for line := range strings.Lines(string(file)) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, "-- ") && strings.HasSuffix(line, " --") {
			heading = line
			continue
		}
		rows = append(rows, append(strings.Split(line, "\t"), heading))
	}
	return rows
}

// texts returns the expressions of all tables about facts.
func texts(t testing.TB) (list []string) {
	t.Helper()
	for _, name := range []string{"shop.txt", "types.txt", "order.txt", "json.txt", "refusals.txt", "java.txt"} {
		for _, row := range table(t, name) {
			list = append(list, row[0])
		}
	}
	return list
}

// outcome is the keys of an expression on facts in Go, or what is wrong with it, behind start: or request:.
func outcome(t testing.TB, k *Key, roots keyexpr.Roots, facts keyexpr.Facts, opts ...keyexpr.Option) string {
	t.Helper()
	tmpl, err := k.Parse(roots, append(opts, keyexpr.OneKey())...)
	if err != nil {
		return "start: " + err.Error()
	}
	keys, err := tmpl.Expand(t.Context(), facts)
	switch {
	case errors.Is(err, keyexpr.ErrValue):
		return "request: " + err.Error()
	case err != nil:
		return "error: " + err.Error()
	}
	return strings.Join(keys, " ")
}

// agrees reports whether an outcome is the one that is wanted, of an error a part.
func agrees(got, want string) bool {
	kind, part, isError := strings.Cut(want, ": ")
	if !isError {
		return got == want
	}
	return strings.HasPrefix(got, kind+": ") && strings.Contains(got, part)
}

func onShop(t testing.TB, k *Key) string {
	return outcome(t, k, shopRoots, func(string) (any, error) { return newShop(), nil })
}

func onGo(t testing.TB, k *Key) string { return outcome(t, k, goRoots, goFactsOf(goFacts)) }

// Each expression has the key that Java makes, worked out from the rules of Spring and of the JLS, or is refused.
func TestKeys(t *testing.T) {
	json := goFacts
	json.Any = jsonOrder
	for _, tt := range []struct {
		file string
		key  func(text string) *Key
		on   func(*Key) string
	}{
		{"shop.txt", func(text string) *Key { return Expression(text) }, func(k *Key) string { return onShop(t, k) }},
		{"java.txt", func(text string) *Key { return Redisson(text) }, func(k *Key) string { return onShop(t, k) }},
		{"types.txt", func(text string) *Key { return Expression(text) }, func(k *Key) string { return onGo(t, k) }},
		{"json.txt", func(text string) *Key { return Expression(text) }, func(k *Key) string { return outcome(t, k, goRoots, goFactsOf(json)) }},
		{"order.txt", func(text string) *Key {
			return Expression(text, Params("order"), Method("com.acme.OrderService", "pay"))
		}, func(k *Key) string { return outcome(t, k, javaRoots, javaFacts) }},
	} {
		for _, row := range table(t, tt.file) {
			if got := tt.on(tt.key(row[0])); !agrees(got, row[1]) {
				t.Errorf("%s: %s comes to %q, want %q", tt.file, row[0], got, row[1])
			}
		}
	}
}

// Methods of String on the texts where they are easily wrong: the empty one, one with a pair of surrogates, ends and repetitions. No
// want stands for an exception of Java, or for what Redis can't hold.
func TestTexts(t *testing.T) {
	for _, row := range table(t, "texts.txt") {
		s, err := strconv.Unquote(row[0])
		if err != nil {
			t.Fatal(row, err)
		}
		want := row[2]
		if want == "" {
			want = "request: "
		}
		got := outcome(t, Expression(row[1]), keyexpr.Roots{"s": keyexpr.TypeFor[string]()}, func(string) (any, error) { return s, nil })
		if !agrees(got, want) {
			t.Errorf("%s of %q comes to %q, want %q", row[1], s, got, want)
		}
	}
}

// What is refused at start, with the place in the Java text and the whole sentence. The place is that of the fault, also within a
// hole and behind signs of several bytes, and the sentence says what to write where there is something to write.
func TestRefusals(t *testing.T) {
	for _, row := range table(t, "refusals.txt") {
		_, err := Expression(row[0], Params("order")).Parse(javaRoots, keyexpr.OneKey())
		checkFault(t, row[0], err, row[1], row[2])
	}
}

// What is no expression, in either grammar, and the place where it stops being one.
func TestSyntax(t *testing.T) {
	for _, row := range table(t, "syntax.txt") {
		_, err := parse(row[0], row[0], 0, row[1] == "java")
		checkFault(t, row[0], err, row[2], row[3])
	}
	// An expression that begins within an annotation has its places there.
	whole := "a-#{1 +}-b"
	_, err := parse(whole, "1 +", 4, false)
	checkFault(t, whole, err, "7", `unexpected "the end"`)
}

func checkFault(t *testing.T, text string, err error, offset, reason string) {
	t.Helper()
	fault, ok := errors.AsType[*keyexpr.Error](err)
	if !ok {
		t.Errorf("%q: %v, want an *Error", text, err)
	} else if fault.Text != text || strconv.Itoa(fault.Offset) != offset || fault.Reason != reason {
		t.Errorf("%q: the error points to\n%d\t%s\nwant\n%s\t%s", text, fault.Offset, fault.Reason, offset, reason)
	}
}

// What binds to what is Spring's grammar, not Java's: ?: is loosest, and comparisons stand alone.
func TestTrees(t *testing.T) {
	for _, row := range table(t, "trees.txt") {
		n, err := parse(row[0], row[0], 0, row[2] == "-- java --")
		switch {
		case err != nil && row[1] != "start":
			t.Errorf("parse(%q): %v", row[0], err)
		case err == nil && tree(n) != row[1]:
			t.Errorf("parse(%q) = %s, want %s", row[0], tree(n), row[1])
		}
	}
}
