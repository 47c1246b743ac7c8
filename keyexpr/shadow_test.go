package keyexpr

import (
	"context"
	"fmt"
	"os"
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

// outOfLanguage are the reasons for which a text that had a key has none now, by what the error says. CHANGELOG has what to
// write for each.
var outOfLanguage = []string{
	"text stands outside of holes", "values are not added", "texts are not added",
	"nothing is calculated here", "is not part of this language", "a loop in a loop takes the product",
	"is not compared as a whole", "name no fact", "names no fact", "all requests would share one key",
	"numbers that are not whole", "can't be a part of something else",
}

// TestShadow holds all templates and conditions of the tests, documents and examples to the keys that they had before the
// language was rebuilt (testdata/shadow.txt: fixture, text, what it came to).
func TestShadow(t *testing.T) {
	lines, err := os.ReadFile("testdata/shadow.txt")
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for line := range strings.Lines(string(lines)) {
		var kind, text string
		var number int
		if _, err := fmt.Sscanf(line, "%s %d %q", &kind, &number, &text); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		quoted := fmt.Sprintf("%s %d %q ", kind, number, text)
		want := strings.TrimSpace(strings.TrimPrefix(line, quoted))
		got, err := shadowAnswer(kind, number, text)
		if again := renamed(text); err != nil && again != text {
			count["renamed"]++
			got, err = shadowAnswer(kind, number, again)
		}
		if got != want && shadowDiffers[kind+" "+text] == "" {
			if reason := shadowReason(err); reason != "" {
				count["refused: "+reason]++
				continue
			}
			t.Errorf("%s %d %s = %s, %v; it was %s", kind, number, text, got, err, want)
			continue
		} else if got != want {
			count["listed"]++
			continue
		}
		count["same"]++
	}
	t.Log(count)
}

func shadowReason(err error) string {
	for _, reason := range outOfLanguage {
		if err != nil && strings.Contains(err.Error(), reason) {
			return reason
		}
	}
	return ""
}

// shadowAnswer is what a text comes to, and the error of one that does not start.
func shadowAnswer(kind string, number int, text string) (string, error) {
	facts := []Facts{testFacts(shadowRequest()), testFacts(nil)}[number]
	if kind == "condition" {
		c, err := ParseCondition(text, testRoots())
		if err != nil {
			return "", err
		}
		holds, err := c.Eval(context.Background(), facts)
		if err != nil {
			return "fails", nil
		}
		return fmt.Sprint(holds), nil
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
	keys, err := tmpl.Expand(context.Background(), facts)
	if err != nil {
		return "fails", nil
	}
	return fmt.Sprintf("%q", keys), nil
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

// shadowDiffers are the texts that come to something else, each with its reason.
var shadowDiffers = map[string]string{
	"untyped #{not (req.Urgent and false)}":                                  "a text is not taken for true or false, and what is never looked at is not worth a rule",
	"untyped #{req.Urgent and false}":                                        "as above",
	"untyped #{req.Urgent || 1 < 2}":                                         "as above",
	"untyped #{true or (false)}:#{or (req.Zero, 'y')}:#{req.Zero | or('z')}": "or is coalesce, also behind a bar",
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
