package history_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/faults/history"
)

func create(t *testing.T, dir, proc string) *history.Log {
	t.Helper()
	l, err := history.Create(dir, proc)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func read(t *testing.T, dir string) []history.Event {
	t.Helper()
	events, err := history.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	return events
}

func ops(events []history.Event) string {
	var b strings.Builder
	for _, e := range events {
		b.WriteString(e.Proc + ":" + string(e.Op) + " ")
	}
	return strings.TrimSpace(b.String())
}

func TestLogsAreMergedByTime(t *testing.T) {
	dir := t.TempDir()
	a, b := create(t, dir, "a"), create(t, dir, "b")
	first := a.Ask(history.Event{Kind: "lock", Keys: []string{"k"}, Worker: 1, Owner: "a/1", Wait: -1})
	first.Enter(t.Context(), 7)
	second := b.Ask(history.Event{Kind: "lock", Keys: []string{"k"}, Worker: 2, Owner: "b/2"})
	first.Look(t.Context())
	first.Exit()
	second.Fail(history.Busy, errors.New("busy"))
	first.Release(nil, false)
	if err := errors.Join(a.Close(), b.Close()); err != nil {
		t.Fatal(err)
	}
	events := read(t, dir)
	if got, want := ops(events), "a:start b:start a:ask a:enter b:ask a:look a:exit b:busy a:released"; got != want {
		t.Errorf("events are %s\nwant       %s", got, want)
	}
	if e := events[3]; e.Call != 1 || e.Token != 7 || e.Line != 3 {
		t.Errorf("enter is %+v, want call 1, token 7, line 3", e)
	}
}

func TestLookEndsTheSectionOnce(t *testing.T) {
	dir := t.TempDir()
	l := create(t, dir, "a")
	held, cancel := context.WithCancelCause(t.Context())
	call := l.Ask(history.Event{})
	if !call.Enter(held, 0) || !call.Look(held) {
		t.Error("a good context is reported over")
	}
	cancel(errors.New("lost"))
	if call.Look(held) {
		t.Error("a context that is over is reported good")
	}
	call.Exit()
	call.Release(errors.New("gone"), true)
	if got, want := ops(read(t, dir)), "a:start a:ask a:enter a:look a:lost a:notheld"; got != want {
		t.Errorf("events are %s, want %s", got, want)
	}
}

func TestManyGoroutinesWriteOneLog(t *testing.T) {
	dir := t.TempDir()
	l := create(t, dir, "a")
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 500 {
				l.Ask(history.Event{Keys: []string{strings.Repeat("k", 100)}}).Exit()
			}
		})
	}
	all.Wait()
	seen := map[int64]int{}
	for _, e := range read(t, dir)[1:] {
		seen[e.Call]++
	}
	if len(seen) != 4000 || slices.ContainsFunc(keys(seen), func(c int64) bool { return seen[c] != 2 }) {
		t.Errorf("%d calls were read, want 4000 with 2 events each", len(seen))
	}
}

func keys(m map[int64]int) (all []int64) {
	for k := range m {
		all = append(all, k)
	}
	return all
}

func TestTornLastLineIsDropped(t *testing.T) {
	dir := t.TempDir()
	l := create(t, dir, "a")
	l.Ask(history.Event{Kind: "lock"})
	name := filepath.Join(dir, "a.log")
	f, err := os.OpenFile(name, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"t":12,"op":"en`); err != nil {
		t.Fatal(err)
	}
	if got, want := ops(read(t, dir)), "a:start a:ask"; got != want {
		t.Errorf("events are %s, want %s", got, want)
	}
	if _, err := f.WriteString("\n"); err != nil {
		t.Fatal(err)
	}
	if events, err := history.Read(dir); err == nil || !strings.Contains(err.Error(), "line 3") {
		t.Errorf("a line that is no event: %v, %v; want an error that names line 3", events, err)
	}
}

func TestFileThatDoesNotStartIsRefused(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.log"), []byte("{\"t\":1,\"op\":\"ask\"}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if events, err := history.Read(dir); err == nil {
		t.Errorf("Read = %v without an error", events)
	}
}

func TestFailedWriteIsReported(t *testing.T) {
	l := create(t, t.TempDir(), "a")
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l.Note(history.Event{Op: history.Look})
	if err := l.Close(); err == nil {
		t.Error("a log that lost a line is closed without an error")
	}
}

// TestKilledProcessLeavesItsLines kills a process that writes as fast as it can.
func TestKilledProcessLeavesItsLines(t *testing.T) {
	if dir := os.Getenv("HISTORY_WRITE_TO"); dir != "" {
		l := create(t, dir, "victim")
		for {
			l.Ask(history.Event{Kind: "lock", Keys: []string{"k"}})
		}
	}
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0], "-test.run=^TestKilledProcessLeavesItsLines$")
	cmd.Env = append(os.Environ(), "HISTORY_WRITE_TO="+dir)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(10 * time.Second); len(written(dir)) < 1<<16 && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed
	events := read(t, dir)
	for i, e := range events[1:] {
		if e.Op != history.Ask || e.Call != int64(i+1) || e.Proc != "victim" {
			t.Fatalf("event %d is %+v", i+1, e)
		}
	}
	if len(events) < 500 {
		t.Errorf("%d events were read", len(events))
	}
}

func written(dir string) []byte {
	b, _ := os.ReadFile(filepath.Join(dir, "victim.log")) // not there yet
	return b
}

func TestNowIsTheClockOfDeadlines(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if left := time.Duration(history.Until(ctx) - history.Now()); left > time.Minute || left < 50*time.Second {
		t.Errorf("a deadline in a minute is %v away", left)
	}
	if got := history.Until(t.Context()); got != 0 {
		t.Errorf("Until of a context without a deadline = %d, want 0", got)
	}
}

func BenchmarkNote(b *testing.B) {
	l, err := history.Create(b.TempDir(), "a")
	if err != nil {
		b.Fatal(err)
	}
	call := l.Ask(history.Event{})
	for b.Loop() {
		call.Look(context.Background())
	}
	if err := l.Close(); err != nil {
		b.Fatal(err)
	}
}
