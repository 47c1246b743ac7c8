package interop

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/latchkey-go/latchkey/keyexpr"
	"github.com/latchkey-go/latchkey/keyexpr/spel"
)

// testdata/corpus.txt has the keys on which package spel is compared with Java, and what becomes of each. A line has the outcome,
// the key, and why it is refused:
//
//	kkkv     #order.name.substring(1)
//	refused  #order.name matches 'A.*'     regular expressions are not read here: …
//
// The outcome has a letter for each order: k for the key that Java makes, v for an order that is refused though Java makes a
// key, j for one of which Java makes none either. refused is a key that does not start. A key is an expression, or a list of
// texts in JSON. What Java made of each is in testdata/answers.json, line by line.
const corpusFile = "testdata/corpus.txt"

var update = flag.Bool("update", false, "write down what becomes of each key of the corpus")

// subject is a key, and how Java is asked for it.
type subject struct {
	key    *spel.Key
	mode   string // see Peer.java
	text   string
	texts  []string
	orders []*Order
	line   string // of the corpus
}

// subjectOf is a subject of a section of the corpus.
func subjectOf(section string, texts ...string) subject {
	s := subject{mode: section, text: texts[0], orders: orders()}
	switch section {
	case "lock4j":
		s.key, s.text, s.texts = spel.Lock4j("pay", texts, spel.Params("order")), "", texts
	case "klock":
		s.key, s.text, s.texts = spel.Klock("pay", texts, spel.Params("order")), "", texts
	case "java":
		s.key = spel.Redisson(texts[0], spel.Params("order"))
	default:
		s.mode, s.key = "spring", spel.Expression(texts[0], spel.Params("order"), spel.Method("latchkey.Peer", "pay"))
	}
	switch section {
	case "letters":
		s.orders = letters()
	case "longs":
		s.orders = longs()
	}
	return s
}

// readCorpus returns the subjects of the corpus in the order of the answers.
func readCorpus(t *testing.T) (subjects []subject) {
	t.Helper()
	file, err := os.ReadFile(corpusFile)
	if err != nil {
		t.Fatal(err)
	}
	section := ""
	for line := range strings.Lines(string(file)) {
		line = strings.TrimSuffix(line, "\n")
		if name, ok := strings.CutPrefix(line, "-- "); ok {
			section = strings.TrimSuffix(name, " --")
			continue
		}
		texts := []string{strings.Split(line, "\t")[1]}
		if strings.HasPrefix(texts[0], "[") {
			if err := json.Unmarshal([]byte(texts[0]), &texts); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
		}
		s := subjectOf(section, texts...)
		s.line = line
		subjects = append(subjects, s)
	}
	return subjects
}

// answer is what Java made of a subject on an order: keys, or an error.
type answer struct {
	Keys  []string `json:"keys,omitempty"`
	Error string   `json:"error,omitempty"`
}

// tally counts how keys came out.
type tally struct {
	letters                map[byte]int // of the outcomes
	start, everywhere, any int
	different              []string
}

func (n *tally) String() string {
	return fmt.Sprintf("%d keys of Java, %d refused for the order, %d refused by Java too, %d refused at start, %d different; %d expressions have a key on each order, %d on any",
		n.letters['k'], n.letters['v'], n.letters['j'], n.start, len(n.different), n.everywhere, n.any)
}

// outcome makes the keys of a subject in Go, and compares them with those of Java.
func (n *tally) outcome(s subject, answers []answer) string {
	tmpl, err := s.key.Parse(orderRoots, keyexpr.OneKey())
	if fault, ok := errors.AsType[*keyexpr.Error](err); ok {
		n.start++
		return "refused\t" + fault.Reason
	}
	b := make([]byte, len(s.orders))
	for i, o := range s.orders {
		got, err := tmpl.Expand(context.Background(), factsOf(o))
		want := slices.Compact(slices.Sorted(slices.Values(answers[i].Keys)))
		switch {
		case err == nil && answers[i].Error == "" && slices.Equal(got, want):
			b[i] = 'k'
		case errors.Is(err, keyexpr.ErrValue) && answers[i].Error != "":
			b[i] = 'j'
		case errors.Is(err, keyexpr.ErrValue):
			b[i] = 'v'
		default:
			b[i] = '!'
			n.different = append(n.different, fmt.Sprintf("%v on order %d: Go %q, %v, Java %q %s", s.key, i, got, err, want, answers[i].Error))
		}
		n.letters[b[i]]++
	}
	if slices.Contains(b, 'k') {
		n.any++
	}
	if string(b) == strings.Repeat("k", len(b)) {
		n.everywhere++
	}
	return string(b)
}

// The counts before regular expressions, split, selections, formats and characters were taken out of the language. At least three
// quarters of these expressions keep their keys.
const (
	everywhereBefore = 414 // had a key on each order
	anyBefore        = 553 // had a key on one
	everywhereNow    = 315
	anyNow           = 421
)

// TestRecordedAnswers holds Go to the keys that Java made when it was last asked: the same key, or none. A change of what
// becomes of a key shows as a change of the corpus.
func TestRecordedAnswers(t *testing.T) {
	recorded, err := os.ReadFile("testdata/answers.json")
	if err != nil {
		t.Fatal(err)
	}
	var answers [][]answer
	subjects := readCorpus(t)
	if err := json.Unmarshal(recorded, &answers); err != nil || len(answers) != len(subjects) {
		t.Fatalf("%d subjects have %d recorded answers, %v: record them", len(subjects), len(answers), err)
	}
	n := &tally{letters: map[byte]int{}}
	var b strings.Builder
	section := ""
	for i, s := range subjects {
		if name := sectionOf(s); name != section {
			section = name
			fmt.Fprintf(&b, "-- %s --\n", section)
		}
		outcome, why, _ := strings.Cut(n.outcome(s, answers[i]), "\t")
		line := strings.TrimSuffix(outcome+"\t"+strings.Split(s.line, "\t")[1]+"\t"+why, "\t")
		if b.WriteString(line + "\n"); line != s.line && !*update {
			t.Errorf("%v: the corpus has\n%s\nand now it is\n%s", s.key, s.line, line)
		}
	}
	t.Log(n)
	for _, d := range n.different {
		t.Error(d)
	}
	if n.everywhere != everywhereNow || n.any != anyNow || 4*everywhereNow < 3*everywhereBefore || 4*anyNow < 3*anyBefore {
		t.Errorf("%d expressions have a key on each order, and %d on any: these are written down as %d and %d, of %d and %d", n.everywhere, n.any, everywhereNow, anyNow, everywhereBefore, anyBefore)
	}
	if *update {
		if err := os.WriteFile(corpusFile, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// sectionOf returns the section of the corpus that a subject stands in.
func sectionOf(s subject) string {
	switch len(s.orders) {
	case len(letters()):
		return "letters"
	case len(longs()):
		return "longs"
	}
	return s.mode
}

// TestErrorsAreInTheJavaText holds that what is refused at start has its place in the text that somebody wrote.
func TestErrorsAreInTheJavaText(t *testing.T) {
	refused := 0
	for _, s := range readCorpus(t) {
		_, err := s.key.Parse(orderRoots, keyexpr.OneKey())
		if err == nil {
			continue
		}
		refused++
		e, ok := errors.AsType[*keyexpr.Error](err)
		if !ok || !strings.Contains(s.key.String(), e.Text) || e.Reason == "" || e.Offset > len(e.Text) || strings.Contains(e.Reason, "\n") {
			t.Errorf("%v: %#v, want an *Error with a place in this text", s.key, err)
		}
	}
	if refused == 0 {
		t.Error("nothing was refused")
	}
}
