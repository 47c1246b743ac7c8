package keyexpr

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
)

// renamed are the templates whose text has changed, and nothing else: or(a, b) is coalesce(a, b).
func renamed(text string) string {
	for _, before := range []string{"{", "(", " ", ",", ":"} {
		text = strings.ReplaceAll(text, before+"or(", before+"coalesce(")
	}
	return text
}

// TestShadow holds all templates and conditions of the tests, documents and examples to the keys that they had before the
// language was rebuilt (testdata/shadow.txt: fixture, request, text, and what it came to). What differs is in
// testdata/differs.txt with what it comes to now, below the reason: any stands for all fixtures and requests. CHANGELOG has what
// to write instead.
func TestShadow(t *testing.T) {
	differs, reasons := map[string]string{}, map[string]int{}
	reason := ""
	eachLine(t, "testdata/differs.txt", func(line string) {
		if title, ok := strings.CutPrefix(line, "-- "); ok {
			reason = title
			return
		}
		text, now := shadowLine(t, line)
		differs[text] = now
		reasons[reason]++
	})
	same, met := 0, map[string]bool{}
	eachLine(t, "testdata/shadow.txt", func(line string) {
		question, was := shadowLine(t, line)
		now := shadowAnswer(t, question)
		listed := question
		if differs[listed] == "" {
			listed = "any " + question[strings.IndexByte(question, '"'):]
		}
		switch want := differs[listed]; {
		case want == "" && now == was:
			same++
		case want == "":
			t.Errorf("%s comes to\n%s\nit was\n%s", question, now, was)
		case *update:
			differs[listed], met[listed] = now, true
		case now != want || now == was:
			t.Errorf("%s comes to\n%s\nand by the list of differences to\n%s", question, now, want)
		default:
			met[listed] = true
		}
	})
	if *update {
		var out strings.Builder
		eachLine(t, "testdata/differs.txt", func(line string) {
			if !strings.HasPrefix(line, "-- ") {
				question, _ := shadowLine(t, line)
				line = question + " " + differs[question]
			}
			out.WriteString(line + "\n")
		})
		if err := os.WriteFile("testdata/differs.txt", []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if len(met) != len(differs) || same < 2500 {
		t.Errorf("%d are the same, and %d of %d differences", same, len(met), len(differs))
	}
	for reason, n := range reasons {
		t.Logf("%4d %s", n, reason)
	}
}

func eachLine(t *testing.T, file string, each func(line string)) {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(content)) {
		each(strings.TrimSpace(line))
	}
}

// shadowLine cuts a line into what is asked and what it came to.
func shadowLine(t *testing.T, line string) (question, answer string) {
	t.Helper()
	quote := strings.IndexByte(line, '"')
	text, err := strconv.QuotedPrefix(line[max(quote, 0):])
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	question = line[:quote+len(text)]
	return question, strings.TrimSpace(line[len(question):])
}

// shadowAnswer is what a text comes to, under its new name if need be: or(a, b) is coalesce(a, b).
func shadowAnswer(t *testing.T, question string) string {
	t.Helper()
	var kind, text string
	var number int
	if _, err := fmt.Sscanf(question, "%s %d %q", &kind, &number, &text); err != nil {
		t.Fatalf("%s: %v", question, err)
	}
	got, err := shadowKey(kind, number, text)
	if again := renamed(text); err != nil && again != text {
		got, err = shadowKey(kind, number, again)
	}
	if fault, ok := errors.AsType[*Error](err); ok {
		return "refused: " + fault.Reason
	}
	return got
}

// shadowKey is what a text comes to, and the error of one that does not start.
func shadowKey(kind string, number int, text string) (string, error) {
	facts := []Facts{testFacts(shadowRequest()), testFacts(nil)}[number]
	if kind == "condition" {
		c, err := ParseCondition(text, testRoots())
		if err != nil {
			return "", err
		}
		if holds, err := c.Eval(context.Background(), facts); err == nil {
			return fmt.Sprint(holds), nil
		}
		return "fails", nil
	}
	roots := testRoots()
	if kind == "untyped" {
		roots = untypedRoots()
	}
	tmpl, err := Parse(text, roots, OneKey())
	if err != nil {
		return "", err
	}
	if kind == "untyped" {
		facts = untyped(tmpl.Fields(), []string{"v", "V:%1"}[number])
	}
	if keys, err := tmpl.Expand(context.Background(), facts); err == nil {
		return fmt.Sprintf("%q", keys), nil
	}
	return "fails", nil
}

func untypedRoots() Roots {
	roots := Roots{"method": TypeFor[string](), "host": TypeFor[string]()}
	for _, name := range []string{"req", "body", "claims", "item", "order"} {
		roots[name] = Root{}
	}
	for _, name := range []string{"path", "query", "header", "md"} {
		roots[name] = AnyName()
	}
	return roots
}

func shadowRequest() *payRequest {
	return &payRequest{OrderID: "o:42", Tenant: "Ac{me", Coupon: new("c%1"), Seq: 7, Shard: 1<<64 - 1, Urgent: true, Level: 3, Ref: uuid{1, 2},
		Digest: []byte{1}, Amount: 2.5, Lines: []line{{"a:1", 1}, {"B", 2}}, Tags: []string{"x", "y"}, Tenants: []tenant{"t"},
		Labels: map[string]string{"a": "b", "id": "i"}, Counts: map[string]int{"n": 1},
		Customer: &customer{Name: "Ann", Parent: &customer{Name: "Pa"}}, Any: map[string]any{"id": "z", "n": 3}}
}

// untyped gives each field that is read a text.
func untyped(fields []string, value string) Facts {
	return func(root string) (any, error) {
		switch root {
		case "path", "query", "header", "md":
			return Lookup(func(name string) (string, bool, error) { return value + name, true, nil }), nil
		case "method", "host":
			return value, nil
		}
		top := map[string]any{}
		for _, f := range fields {
			at := top
			names := strings.Split(f, ".")
			if names[0] != root {
				continue
			}
			for i, n := range names[1:] {
				if i == len(names)-2 {
					if _, ok := at[n]; !ok {
						at[n] = value + n
					}
				} else {
					next, ok := at[n].(map[string]any)
					if !ok {
						next = map[string]any{}
						at[n] = next
					}
					at = next
				}
			}
		}
		return top, nil
	}
}
