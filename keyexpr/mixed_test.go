package keyexpr

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/latchkey-go/latchkey/keyexpr/internal/run"
)

type leg struct {
	From, To string
	Seats    int
}

type trip struct {
	Name  string
	Legs  []leg
	First *leg
	Code  string
}

// TestRandomPaths mixes literals with paths through two roots, which are not asked for twice, and of which some texts are empty or long.
func TestRandomPaths(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 11))
	value := func() string {
		switch r.IntN(40) {
		case 0:
			return ""
		case 1:
			return strings.Repeat("x", run.MaxKey/2)
		}
		return string(rune('a' + r.IntN(26)))
	}
	for range 2000 {
		a := &trip{Name: value(), Code: value(), First: &leg{From: value(), To: value(), Seats: r.IntN(9)}}
		b := leg{From: value(), To: value(), Seats: r.IntN(9)}
		holes := []struct{ path, want string }{
			{"a.Name", a.Name}, {"a.Code", a.Code}, {"a.First.From", a.First.From}, {"a.First.Seats", fmt.Sprint(a.First.Seats)},
			{"b.From", b.From}, {"b.To", b.To}, {"b.Seats", fmt.Sprint(b.Seats)}, {"upper(b.To)", strings.ToUpper(b.To)},
		}
		text, want, empty := "k", "k", ""
		for range 1 + r.IntN(7) {
			hole := holes[r.IntN(len(holes))]
			text += ":#{" + hole.path + "}"
			want += ":" + hole.want
			if hole.want == "" && empty == "" {
				empty = hole.path
			}
		}
		tmpl, err := Parse(text, Roots{"a": TypeFor[*trip](), "b": TypeFor[leg]()})
		if err != nil {
			t.Fatal(err)
		}
		asked := map[string]int{}
		keys, err := tmpl.Expand(context.Background(), func(root string) (any, error) {
			asked[root]++
			if root == "a" {
				return a, nil
			}
			return b, nil
		})
		switch {
		case asked["a"] > 1 || asked["b"] > 1:
			t.Errorf("%s: asked for %v", text, asked)
		case empty != "":
			if err == nil || !strings.Contains(err.Error(), empty) {
				t.Errorf("%s with an empty %s: %.40q, %v", text, empty, keys, err)
			}
		case len(want) > run.MaxKey:
			if err != nil || len(keys) != 1 || len(keys[0]) > run.MaxKey {
				t.Errorf("%s: %.40q, %v, want a digest", text, keys, err)
			}
		case err != nil || !slices.Equal(keys, []string{want}):
			t.Errorf("%s = %.60q, %v, want %.60q", text, keys, err, want)
		}
	}
}
