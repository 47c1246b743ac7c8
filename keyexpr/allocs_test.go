package keyexpr

import (
	"context"
	"strings"
	"testing"
)

// What a key costs in memory is counted here, as a time can't be held on a machine that does other things. The table is that of
// the benchmarks. The key is one allocation, and a list that stays with the caller of Expand is none, as long as Expand itself is inlined.
func TestAllocations(t *testing.T) {
	held := slower == 1 && testing.CoverMode() == ""
	if !held {
		t.Log("the race detector allocates by itself, and what is counted for coverage is not inlined: these counts are not held")
	}
	for _, tt := range []struct {
		name, text string
		most       float64
	}{
		{"a literal and a path", "order:#{req.OrderID}", 1},
		{"two paths", "order:#{req.Tenant}:#{req.OrderID}", 1},
		{"two paths and a number", "order:#{req.Tenant}:#{req.OrderID}:#{req.Total}", 1},
		{"a number", "order:#{req.Total}", 1},
		{"two paths in functions", "order:#{lower(req.Tenant)}:#{lower(req.OrderID)}", 1},
		{"a header", "tenant:#{header.Tenant}", 1},
		{"a header in a function", "tenant:#{lower(header.Tenant)}", 1},
		{"a header and a path", "order:#{lower(header.Tenant)}:#{req.OrderID}", 1},
		{"a default", "tenant:#{header.Nope ?? req.Tenant}", 5},
		{"a choice", "#{req.Total > 5 ? req.Tenant : 'small'}", 7},
		{"a list of three", "#{map(req.Lines, .SKU)}", 18},
		{"a list of three behind a text", "stock:#{map(req.Lines, .SKU)}", 18},
		{"a hash", "order:#{hash(req.Tenant)}", 11},
		{"a shard", "order:#{shard(req.Tenant, 16)}", 6},
	} {
		tmpl, err := Parse(tt.text, benchRoots)
		if err != nil {
			t.Fatal(err)
		}
		got := testing.AllocsPerRun(200, func() {
			if _, err := tmpl.Expand(context.Background(), benchFacts); err != nil {
				t.Error(err)
			}
		})
		if got > tt.most && held {
			t.Errorf("%s: %v allocations, want %v at most", tt.name, got, tt.most)
		}
	}
}

// With a list of the caller's, the key is the one thing that is made.
func TestAppendKeysAllocatesTheKeyAlone(t *testing.T) {
	tmpl, err := Parse("order:#{req.Tenant}:#{req.OrderID}", benchRoots)
	if err != nil {
		t.Fatal(err)
	}
	room := make([]string, 0, 4)
	got := testing.AllocsPerRun(200, func() {
		if _, err := tmpl.AppendKeys(context.Background(), room, benchFacts); err != nil {
			t.Error(err)
		}
	})
	if got > 1 && slower == 1 {
		t.Errorf("%v allocations, want 1", got)
	}
}

// AppendKeys leaves what is there alone, and sorts its own keys only.
func TestAppendKeys(t *testing.T) {
	tmpl, err := Parse("#{map(req.Lines, .SKU)}", benchRoots)
	if err != nil {
		t.Fatal(err)
	}
	keys, err := tmpl.AppendKeys(t.Context(), []string{"zz", "aa"}, benchFacts)
	if err != nil || strings.Join(keys, " ") != "zz aa ink paper pen" {
		t.Errorf("AppendKeys = %q, %v", keys, err)
	}
}

// A condition that compares an id with a number, or a text with a text, makes next to nothing.
func TestConditionsAllocateLittle(t *testing.T) {
	for _, text := range []string{"req.Total > 5", "req.Total == 7", "req.Tenant != ''", "req.Total > 5 && req.Tenant != ''", "not (req.Total < 5)"} {
		c, err := ParseCondition(text, benchRoots)
		if err != nil {
			t.Fatal(err)
		}
		got := testing.AllocsPerRun(200, func() {
			if _, err := c.Eval(context.Background(), benchFacts); err != nil {
				t.Error(err)
			}
		})
		if got > 9 && slower == 1 {
			t.Errorf("%s: %v allocations", text, got)
		}
	}
}
