package interop

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/latchkey-go/latchkey/keyexpr"
	"github.com/latchkey-go/latchkey/keyexpr/spel"
)

var verbose = flag.Bool("keys", false, "log the outcome of each expression")

// subject is a key, and how Java is asked for it.
type subject struct {
	key *spel.Key
	ask question
}

func expression(text string) subject {
	return subject{spel.Expression(text, spel.Params("order"), spel.Method("latchkey.Peer", "pay")), question{Mode: "spring", Text: text}}
}

// tally counts how expressions came out.
type tally struct {
	same, refused, value, both int // refused at start, refused for a value, and by Java too
	different                  []string
}

func (n *tally) String() string {
	return fmt.Sprintf("%d the same key, %d refused at start, %d refused for the value, %d refused by Java too, %d different",
		n.same, n.refused, n.value, n.both, len(n.different))
}

// compare asks both sides for the keys of some subjects on some orders.
func compare(t *testing.T, p *peer, subjects []subject, orders []*Order) *tally {
	t.Helper()
	var questions []question
	for _, s := range subjects {
		for _, o := range orders {
			q := s.ask
			q.Order = o
			questions = append(questions, q)
		}
	}
	answers, err := p.ask(questions)
	if err != nil {
		t.Fatal(err)
	}
	n := &tally{}
	for i, s := range subjects {
		tmpl, err := s.key.Parse(roots, keyexpr.OneKey())
		if err != nil {
			checkError(t, s.key, err)
		}
		for j, o := range orders {
			a := answers[i*len(orders)+j]
			var got []string
			fails := err
			if err == nil {
				got, fails = tmpl.Expand(context.Background(), facts(o))
			}
			n.add(t, s, j, a, got, err, fails)
		}
	}
	return n
}

func (n *tally) add(t *testing.T, s subject, order int, a answer, got []string, start, err error) {
	slices.Sort(a.Keys)
	want := slices.Compact(a.Keys)
	if *verbose {
		t.Logf("%v on order %d: Go %q, %v; Java %q, %s", s.key, order, got, err, want, a.Error)
	}
	switch {
	case err == nil && a.Error == "" && slices.Equal(got, want):
		n.same++
	case err == nil:
		n.different = append(n.different, fmt.Sprintf("%v on order %d: Go %q, Java %q %s", s.key, order, got, want, a.Error))
	case a.Error != "":
		n.both++
	case start != nil:
		n.refused++
	case errors.Is(err, keyexpr.ErrValue):
		n.value++
	default:
		n.different = append(n.different, fmt.Sprintf("%v on order %d: %v, want ErrValue", s.key, order, err))
	}
}

// checkError holds that errors at start point into the Java text.
func checkError(t *testing.T, k *spel.Key, err error) {
	t.Helper()
	e, ok := errors.AsType[*keyexpr.Error](err)
	if !ok || !strings.Contains(k.String(), e.Text) || e.Reason == "" || e.Offset > len(e.Text) {
		t.Errorf("%v: %#v, want an *Error with a place in this text", k, err)
	}
}

func report(t *testing.T, n *tally, least int) {
	t.Helper()
	t.Log(n)
	for _, d := range n.different {
		t.Error(d)
	}
	if n.same < least {
		t.Errorf("only %d keys are the same, want at least %d: too much is refused", n.same, least)
	}
}

func TestExpressions(t *testing.T) {
	p := startPeer(t)
	var subjects []subject
	for _, text := range corpus {
		subjects = append(subjects, expression(text))
	}
	t.Logf("%d expressions on %d orders", len(subjects), len(orders()))
	report(t, compare(t, p, subjects, orders()), 500)
}

// The case of letters, and what is white space.
func TestAlphabets(t *testing.T) {
	p := startPeer(t)
	var subjects []subject
	for _, method := range []string{"toUpperCase()", "toLowerCase()", "trim()", "strip()", "isBlank()", "length()", "hashCode()", "equalsIgnoreCase('k')", "equalsIgnoreCase('SS')", "equalsIgnoreCase('ω')"} {
		subjects = append(subjects, expression("'x' + #order.name."+method), expression("'x' + #order.isbn."+method))
	}
	report(t, compare(t, p, subjects, sigmas()), 300)
}

func TestPresets(t *testing.T) {
	p := startPeer(t)
	var subjects []subject
	for _, keys := range lock4jCorpus {
		subjects = append(subjects, subject{spel.Lock4j("pay", keys, spel.Params("order")), question{Mode: "lock4j", Name: "pay", Texts: keys}})
	}
	for _, keys := range klockCorpus {
		subjects = append(subjects, subject{spel.Klock("pay", keys, spel.Params("order")), question{Mode: "klock", Name: "pay", Texts: keys}})
	}
	for _, text := range javaCorpus {
		subjects = append(subjects, subject{spel.Redisson(text, spel.Params("order")), question{Mode: "java", Text: text}})
	}
	report(t, compare(t, p, subjects, orders()), 200)
}
