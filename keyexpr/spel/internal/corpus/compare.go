package corpus

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/latchkey-go/latchkey/keyexpr"
)

// Tally counts how keys came out.
type Tally struct {
	Same, Start, Value, Both int // refused at start, refused for a value, and by Java too
	Different                []string
}

// String is a line for people.
func (n *Tally) String() string {
	return fmt.Sprintf("%d the same key, %d refused at start, %d refused for the value, %d refused by Java too, %d different",
		n.Same, n.Start, n.Value, n.Both, len(n.Different))
}

// Compare makes the keys of subjects in Go, and counts how they agree with Java's. Each is told to logf, if that is not nil.
func Compare(subjects []Subject, answers [][]Answer, logf func(format string, args ...any)) *Tally {
	n := &Tally{}
	for i, s := range subjects {
		tmpl, start := s.Key.Parse(Roots, keyexpr.OneKey())
		for j, o := range s.Orders() {
			got, err := []string(nil), start
			if start == nil {
				got, err = tmpl.Expand(context.Background(), Facts(o))
			}
			if logf != nil {
				logf("%v on order %d: Go %q, %v; Java %q", s.Key, j, got, err, answers[i][j])
			}
			n.add(fmt.Sprintf("%v on order %d", s.Key, j), answers[i][j].Sorted(), got, start, err)
		}
	}
	return n
}

func (n *Tally) add(what string, a Answer, got []string, start, err error) {
	switch {
	case err == nil && a.Error == "" && slices.Equal(got, a.Keys):
		n.Same++
	case err == nil:
		n.Different = append(n.Different, fmt.Sprintf("%s: Go %q, Java %q %s", what, got, a.Keys, a.Error))
	case a.Error != "":
		n.Both++
	case start != nil:
		n.Start++
	case errors.Is(err, keyexpr.ErrValue):
		n.Value++
	default:
		n.Different = append(n.Different, fmt.Sprintf("%s: %v, want ErrValue", what, err))
	}
}
