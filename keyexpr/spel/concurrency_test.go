package spel

import (
	"context"
	"fmt"
	"testing"

	"github.com/latchkey-go/latchkey/keyexpr"
	"github.com/latchkey-go/latchkey/keyexpr/spel/internal/keytest"
)

// TestManyRequestsAtOnce runs each expression in these tests for several requests at once; TestCorpusAtOnce does so with
// those that Java has answered.
func TestManyRequestsAtOnce(t *testing.T) {
	orders, others := make([]keyexpr.Facts, keytest.Goroutines), make([]keyexpr.Facts, keytest.Goroutines)
	for i := range orders {
		v, _ := javaFacts("req")
		o := v.(*javaOrder)
		o.ID, o.Name = int64(i*21), fmt.Sprint(" Name ", i)
		if i%2 == 1 {
			o.Note, o.Owner = &o.Name, &javaOwner{"login"}
		}
		orders[i] = func(string) (any, error) { return o, nil }
		g := goFacts
		g.I, g.I32, g.S, g.Ph = i*3, int32(i)<<28, fmt.Sprint("s", i), phase(i%2)
		others[i] = goFactsOf(g)
	}
	started := 0
	for _, text := range keytest.Literals(t) {
		k := Expression(text, Params("order"), Method("com.acme.OrderService", "pay"))
		for _, w := range []struct {
			roots keyexpr.Roots
			facts []keyexpr.Facts
		}{{javaRoots, orders}, {goRoots, others}} {
			tmpl, err := k.Parse(w.roots, keyexpr.OneKey())
			if err != nil || len(tmpl.Roots()) == 0 {
				continue
			}
			started++
			keytest.AtOnce(t, text, func(i int) ([]string, error) { return tmpl.Expand(context.Background(), w.facts[i]) })
		}
	}
	t.Logf("%d expressions", started)
	if started < 150 {
		t.Errorf("only %d expressions of these tests start", started)
	}
}
