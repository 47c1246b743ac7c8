package spel

import (
	"fmt"
	"sync"
	"testing"

	"github.com/latchkey-go/latchkey/keyexpr"
)

// TestManyRequestsAtOnce runs each expression of the tables for several requests at once, each with other facts, and holds each
// answer to the one that was given alone. A closure that assigns to a variable outside of itself mixes up two of them, which the
// race detector sees even where the answers happen to be right.
func TestManyRequestsAtOnce(t *testing.T) {
	const requests = 8
	orders, others := make([]keyexpr.Facts, requests), make([]keyexpr.Facts, requests)
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
	for _, text := range texts(t) {
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
			answer := func(i int) string {
				keys, err := tmpl.Expand(t.Context(), w.facts[i])
				return fmt.Sprintf("%q, %v", keys, err)
			}
			var running sync.WaitGroup
			start := make(chan struct{})
			for i := range requests {
				want := answer(i)
				running.Go(func() {
					<-start
					for range 3 {
						if got := answer(i); got != want {
							t.Errorf("%s comes to %s among others, and to %s alone", text, got, want)
						}
					}
				})
			}
			close(start)
			running.Wait()
		}
	}
	if started < 150 {
		t.Errorf("only %d expressions of these tests start", started)
	}
}
