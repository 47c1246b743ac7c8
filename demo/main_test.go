package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

func TestDemo(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), "", &out); err != nil {
		t.Fatalf("run = %v\n%s", err, out.String())
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	var got map[string]float64
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &got); err != nil {
		t.Fatalf("last line: %v\n%s", err, out.String())
	}
	lost, ok := got["guarded_lost_updates"]
	if got["requests"] != callers || got["unguarded_lost_updates"] < 1 || lost != 0 || !ok || len(got) != 6 || len(lines) != 4 {
		t.Errorf("the demo shows\n%s", out.String())
	}
}

// A Redis that is named and not there is an error that says who named it.
func TestNoRedis(t *testing.T) {
	err := run(t.Context(), "redis://127.0.0.1:1", &bytes.Buffer{})
	if err == nil || !strings.Contains(err.Error(), "LATCHKEY_REDIS_URL") {
		t.Errorf("run = %v", err)
	}
}

// The demo fails if it shows anything but that locks keep what is lost without them.
func TestComparisonCheck(t *testing.T) {
	failed := errors.New("503")
	for _, tt := range []struct {
		unguarded, guarded tally
		want               string
	}{
		{tally{lost: 9}, tally{}, ""},
		{tally{lost: 9}, tally{busy: 7}, ""},
		{tally{lost: 9}, tally{lost: 1}, "1 guarded updates were lost"},
		{tally{lost: 9}, tally{lost: -1}, "-1 guarded updates were lost"},
		{tally{lost: 9}, tally{failed: failed}, "guarded: 503"},
		{tally{lost: 9, failed: failed}, tally{}, "unguarded: 503"},
		{tally{}, tally{}, "no unguarded update was lost"},
	} {
		err := comparison{tt.unguarded, tt.guarded}.check()
		if (err == nil) != (tt.want == "") || err != nil && !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("check(%+v, %+v) = %v, want %q", tt.unguarded, tt.guarded, err, tt.want)
		}
	}
}
