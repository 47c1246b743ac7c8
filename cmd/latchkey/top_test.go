package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/redisson"
	"github.com/redis/go-redis/v9"
)

// Locks of which it is known since when they are held come before the others, which are in the order in which they are waited for.
func TestOldestFirst(t *testing.T) {
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	since := map[string]time.Time{"new": noon.Add(time.Hour), "old": noon, "as old": noon}
	locks := []redisson.Object{{Key: "b"}, {Key: "new", Listeners: 9}, {Key: "waited", Listeners: 3}, {Key: "old"}, {Key: "as old"}, {Key: "a"}}
	slices.SortFunc(locks, oldestFirst(func(o redisson.Object) time.Time { return since[o.Key] }))
	var got []string
	for _, o := range locks {
		got = append(got, o.Key)
	}
	if want := []string{"as old", "old", "new", "waited", "a", "b"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// Of very many locks, top keeps few in memory, and those that are waited for most.
func TestTopKeepsFew(t *testing.T) {
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	rows := &table{app: &app{out: &output{File: null}}, order: waitedFirst, most: 3}
	for i := range int64(50_000) {
		if err := rows.add(redisson.Object{Key: fmt.Sprintf("%05d", i), Listeners: i % 49_999}); err != nil {
			t.Fatal(err)
		}
		if len(rows.rows) > 3+sortedRows {
			t.Fatalf("%d are kept after %d", len(rows.rows), i)
		}
	}
	rows.sort()
	if got := []string{rows.rows[0].Key, rows.rows[1].Key, rows.rows[2].Key}; !slices.Equal(got, []string{"49998", "49997", "49996"}) {
		t.Errorf("the most waited for are %q", got)
	}
}

// fillLocks writes locks that nobody renews.
func fillLocks(t *testing.T, rdb *redis.Client, n int) {
	t.Helper()
	pipe := rdb.Pipeline()
	for i := range n {
		pipe.HSet(t.Context(), fmt.Sprint("order:", i), fmt.Sprintf("aaaaaaaa-bbbb-4ccc-8ddd-%012d:%d", i%50, i), 1)
		pipe.PExpire(t.Context(), fmt.Sprint("order:", i), time.Hour)
	}
	if _, err := pipe.Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// worked is how long Redis has run scripts.
func worked(t *testing.T, rdb *redis.Client) (total time.Duration) {
	t.Helper()
	for line := range strings.Lines(rdb.Info(t.Context(), "commandstats").Val()) {
		var calls, µs int64
		if name, rest, _ := strings.Cut(line, ":"); strings.HasPrefix(name, "cmdstat_eval") {
			_, _ = fmt.Sscanf(rest, "calls=%d,usec=%d", &calls, &µs)
			total += time.Duration(µs) * time.Microsecond
		}
	}
	return total
}

// Commands that look at very many locks leave most of Redis' time to others, unless they are told to be fast.
func TestLsRests(t *testing.T) {
	s := redistest.Start(t)
	rdb := s.Client(t)
	fillLocks(t, rdb, 50_000)
	share := func(length time.Duration, args ...string) float64 {
		p := startIn(t, at(s), nil, args...)
		go p.out.rest() // or it would wait for a reader
		before, begun := worked(t, rdb), time.Now()
		select {
		case err := <-p.done:
			p.done <- err
		case <-time.After(length):
		}
		part := float64(worked(t, rdb)-before) / float64(time.Since(begun))
		_ = p.cmd.Process.Kill()
		return part
	}
	var all, allFast float64
	for _, args := range [][]string{{"ls"}, {"top"}, {"watch", "--limit", "100000"}} {
		slow := share(3*time.Second, args...)
		fast := share(1500*time.Millisecond, append(args, "--fast")...)
		t.Logf("%s: %.2f of Redis' time, %.2f with --fast", args[0], slow, fast)
		if slow > 0.2 || slow < 0.02 {
			t.Errorf("%s takes %.2f of Redis' time", args[0], slow)
		}
		all, allFast = all+slow, allFast+fast
	}
	if allFast < 1.4*all { // on a busy machine one alone says little
		t.Errorf("they take %.2f of Redis' time, and %.2f with --fast", all, allFast)
	}
}
