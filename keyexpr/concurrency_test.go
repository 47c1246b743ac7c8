package keyexpr

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/keyexpr/internal/keytest"
)

// world is a set of roots that tables of these tests are about, and the facts of several requests.
type world struct {
	roots Roots
	facts []Facts
}

func worlds() map[string]world {
	all := map[string]world{
		"pay":      {roots: testRoots(), facts: strangers(keytest.Goroutines)},
		"shelf":    {roots: Roots{"req": TypeFor[*shelf](), "header": AnyName()}},
		"stock":    {roots: stockRoots},
		"function": {roots: Roots{"req": TypeFor[functionRequest]()}},
	}
	add := func(name string, req any) {
		w := all[name]
		w.facts = append(w.facts, func(root string) (any, error) {
			if root == "header" {
				return lookupOf(map[string]string{"Tenant": fmt.Sprint(len(w.facts))}), nil
			}
			return req, nil
		})
		all[name] = w
	}
	for i := range keytest.Goroutines {
		v, _ := shelfFacts("req")
		s := v.(*shelf)
		s.ID, s.Name, s.At = i*3, fmt.Sprint("name", i), s.At.Add(time.Duration(i)*time.Hour)
		s.Names = append(s.Names, s.Name)
		s.Any = s.Small
		if i%2 == 1 {
			s.Next = &shelf{Name: s.Name, List: s.List}
		}
		add("shelf", s)
		id := fmt.Sprint(i, ":", i)
		add("stock", stockRequest{A: "a" + id, B: "b" + id, C: "c" + id, Lines: []stockLine{{id, "s" + id}}, Tags: []string{id, "t"}, Nested: [][]string{{id}}})
		add("function", newFunctionRequest(id, int8(i*11-40)))
	}
	return all
}

// TestManyRequestsAtOnce runs each template and each condition in these tests for several requests at once.
func TestManyRequestsAtOnce(t *testing.T) {
	texts := keytest.Literals(t)
	for name, w := range worlds() {
		templates, conditions := 0, 0
		for _, text := range texts {
			if tmpl, err := Parse(text, w.roots, append(userFunctions(), OneKey())...); err == nil && strings.Contains(text, "#{") {
				templates++
				keytest.AtOnce(t, text, func(i int) ([]string, error) { return tmpl.Expand(context.Background(), w.facts[i]) })
			}
			if cond, err := ParseCondition(text, w.roots); err == nil {
				conditions++
				keytest.AtOnce(t, text, func(i int) ([]string, error) {
					holds, err := cond.Eval(context.Background(), w.facts[i])
					return []string{fmt.Sprint(holds)}, err
				})
			}
		}
		t.Logf("%s: %d templates, %d conditions", name, templates, conditions)
		if templates < 40 {
			t.Errorf("only %d templates of these tests are about %s", templates, name)
		}
	}
}
