package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/examples/internal/exampletest"
)

func TestNoMoreThanTheLimits(t *testing.T) {
	var out strings.Builder
	if err := run(t.Context(), exampletest.Clients(t, 1)[0], &out); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	most := [][3]int{{30, 3, 3}, {30, 4, 1}, {30, 30, 5}}
	for i, line := range lines {
		about, figures, _ := strings.Cut(line, ": ")
		var made, all, one int
		var took string
		if _, err := fmt.Sscanf(figures, "%d reports within %s at most %d at once and %d of a customer", &made, &took, &all, &one); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if d, err := time.ParseDuration(strings.TrimSuffix(took, ",")); err != nil || d < 400*time.Millisecond && strings.HasPrefix(about, "ten") {
			t.Errorf("%s: took %s", about, took)
		}
		if made != most[i][0] || all > most[i][1] || one > most[i][2] {
			t.Errorf("%s: %s", about, figures)
		}
	}
	if len(lines) != len(most) {
		t.Errorf("%d lines: %s", len(lines), out.String())
	}
}
