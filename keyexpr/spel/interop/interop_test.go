package interop

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"testing"

	"github.com/latchkey-go/latchkey/keyexpr/spel/internal/corpus"
)

var (
	verbose = flag.Bool("keys", false, "log the outcome of each expression")
	record  = flag.Bool("record", false, "record the answers of Java, for tests without it")
)

// askAll asks Java for the keys of all subjects on their orders.
func askAll(t *testing.T, p *peer, subjects []corpus.Subject) (answers [][]corpus.Answer) {
	t.Helper()
	var questions []question
	for _, s := range subjects {
		for _, o := range s.Orders() {
			questions = append(questions, question{s.Mode, s.Text, s.Name, s.Texts, o})
		}
	}
	flat, err := p.ask(questions)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range subjects {
		n := len(s.Orders())
		answers = append(answers, flat[:n])
		flat = flat[n:]
	}
	return answers
}

// report fails the test if a key differs, or if less than that many are the same.
func report(t *testing.T, n *corpus.Tally, least int) {
	t.Helper()
	t.Log(n)
	for _, d := range n.Different {
		t.Error(d)
	}
	if n.Same < least {
		t.Errorf("only %d keys are the same, want at least %d: too much is refused", n.Same, least)
	}
}

func compare(t *testing.T, subjects []corpus.Subject, answers [][]corpus.Answer) *corpus.Tally {
	if *verbose {
		return corpus.Compare(subjects, answers, t.Logf)
	}
	return corpus.Compare(subjects, answers, nil)
}

// TestCorpus asks Java for every key of the corpus.
func TestCorpus(t *testing.T) {
	p := startPeer(t)
	subjects := corpus.Subjects()
	answers := askAll(t, p, subjects)
	t.Logf("%d keys", len(subjects))
	report(t, compare(t, subjects, answers), 1700)
	if !*record {
		return
	}
	var b bytes.Buffer
	b.WriteString("[\n")
	for i, row := range answers {
		for j := range row {
			if row[j].Error != "" {
				row[j].Error = "thrown" // the words are Java's own affair
			}
		}
		line, err := json.Marshal(row)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(line)
		if i+1 < len(answers) {
			b.WriteByte(',')
		}
		b.WriteByte('\n')
	}
	b.WriteString("]\n")
	if err := os.WriteFile("../internal/corpus/answers.json", b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}
