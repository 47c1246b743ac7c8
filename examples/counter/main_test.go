package main

import (
	"strings"
	"testing"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/redisson"
)

func TestNoUpdateIsLost(t *testing.T) {
	client, err := redisson.Open("redis://" + redistest.Any(t).Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	var out strings.Builder
	if err := run(t.Context(), client, &out); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "with a guard:    1000 of 1000") {
		t.Errorf("it printed\n%s", out.String())
	}
}
