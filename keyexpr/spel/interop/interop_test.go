package interop

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"testing"
)

var record = flag.Bool("record", false, "record the answers of Java, for tests without it")

// askAll asks Java for the keys of all subjects on their orders.
func askAll(t *testing.T, p *peer, subjects []subject) (answers [][]answer) {
	t.Helper()
	var questions []question
	for _, s := range subjects {
		q := question{Mode: s.mode, Text: s.text, Texts: s.texts}
		if s.texts != nil {
			q.Name = "pay"
		}
		for _, q.Order = range s.orders {
			questions = append(questions, q)
		}
	}
	flat, err := p.ask(questions)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range subjects {
		n := len(s.orders)
		answers = append(answers, flat[:n])
		flat = flat[n:]
	}
	return answers
}

// compare fails the test if a key differs, or if less than that many are the same.
func compare(t *testing.T, subjects []subject, answers [][]answer, least int) {
	t.Helper()
	n := &tally{letters: map[byte]int{}}
	for i, s := range subjects {
		n.outcome(s, answers[i])
	}
	t.Log(n)
	for _, d := range n.different {
		t.Error(d)
	}
	if n.letters['k'] < least {
		t.Errorf("only %d keys are the same, want at least %d: too much is refused", n.letters['k'], least)
	}
}

// TestCorpus asks Java for every key of the corpus.
func TestCorpus(t *testing.T) {
	p := startPeer(t)
	subjects := readCorpus(t)
	answers := askAll(t, p, subjects)
	compare(t, subjects, answers, 1700)
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
	if err := os.WriteFile("testdata/answers.json", b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}
