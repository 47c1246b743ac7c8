package spel_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/latchkey-go/latchkey/keyexpr"
	"github.com/latchkey-go/latchkey/keyexpr/spel/internal/corpus"
	"github.com/latchkey-go/latchkey/keyexpr/spel/internal/keytest"
)

// TestRecordedAnswers holds Go to the keys that Java made when it was last asked: the same key, or none.
func TestRecordedAnswers(t *testing.T) {
	subjects := corpus.Subjects()
	answers, err := corpus.Answers()
	if err != nil || len(answers) != len(subjects) {
		t.Fatalf("%d subjects have %d recorded answers, %v: record them in interop", len(subjects), len(answers), err)
	}
	n := corpus.Compare(subjects, answers, nil)
	t.Log(n)
	for _, d := range n.Different {
		t.Error(d)
	}
	if n.Same < 1800 {
		t.Errorf("only %d keys are the same: too much is refused", n.Same)
	}
}

// TestErrorsAreInTheJavaText holds that what is refused at start has its place in the text that somebody wrote.
func TestErrorsAreInTheJavaText(t *testing.T) {
	refused := 0
	for _, s := range corpus.Subjects() {
		_, err := s.Key.Parse(corpus.Roots, keyexpr.OneKey())
		if err == nil {
			continue
		}
		refused++
		e, ok := errors.AsType[*keyexpr.Error](err)
		if !ok || !strings.Contains(s.Key.String(), e.Text) || e.Reason == "" || e.Offset > len(e.Text) || strings.Contains(e.Reason, "\n") {
			t.Errorf("%v: %#v, want an *Error with a place in this text", s.Key, err)
		}
	}
	if refused == 0 {
		t.Error("nothing was refused")
	}
}

// TestCorpusAtOnce makes each key of the corpus for several orders at once.
func TestCorpusAtOnce(t *testing.T) {
	started := 0
	for _, s := range corpus.Subjects() {
		tmpl, err := s.Key.Parse(corpus.Roots, keyexpr.OneKey())
		if err != nil {
			continue
		}
		started++
		orders := s.Orders()
		keytest.AtOnce(t, s.Key.String(), func(i int) ([]string, error) {
			return tmpl.Expand(context.Background(), corpus.Facts(orders[i%len(orders)]))
		})
	}
	t.Logf("%d keys", started)
	if started < 500 {
		t.Errorf("only %d keys of the corpus start", started)
	}
}
