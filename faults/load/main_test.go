package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/lock"
)

// The processes of the tests are this binary, with subjects that have mistakes.
func TestMain(m *testing.M) {
	if kind := os.Getenv(kindVariable); kind != "" {
		if err := serve(kind, newBroken, os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func newBroken(kind string, l *locks) (subject, string, error) {
	switch kind {
	case "unlocked":
		return &unlocked{l}, "", nil
	case "leaky":
		return &leaky{crowd: crowd{l}}, "", nil
	}
	return newSubject(kind, l)
}

// unlocked enters sections without a lock.
type unlocked struct{ *locks }

func (u *unlocked) run(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); u.done(0) {
		if u.inside.section(0, func() { time.Sleep(time.Millisecond) }) {
			u.overlap()
		}
	}
}

func (u *unlocked) close() error { return u.client.Close() }

// leaky keeps something of each run but the first, and more after its end.
type leaky struct {
	crowd
	runs int
	kept [][]byte
	open []*os.File
}

func (l *leaky) run(d time.Duration) {
	l.crowd.run(d)
	if l.runs++; d == 0 || l.runs == 1 {
		return
	}
	for range moreGoroutines + 1 {
		go func() { select {} }()
	}
	for range moreFDs + 1 {
		if f, err := os.Open(os.DevNull); err == nil {
			l.open = append(l.open, f)
		}
	}
	l.kept = append(l.kept, slices.Repeat([]byte{1}, 2*leastRSS))
	_, _ = l.client.Acquire(context.Background(), lock.Request{Key: "kept"})
	_, _ = l.client.Acquire(context.Background(), lock.Request{Key: "kept too", Lease: time.Hour})
}

func TestLoadsFindMistakes(t *testing.T) {
	few := size{Goroutines: 20, Keys: 4, Watchdog: 3 * time.Second}
	for _, tt := range []struct {
		kind string
		want []string
	}{
		{"crowd", nil},
		{"held", nil},
		{"unlocked", []string{"overlaps"}},
		{"leaky", []string{"heap grew", "RSS grew", "goroutines grew", "descriptors grew", "keys grew",
			"goroutines are left", "descriptors are left", "keys are left"}},
	} {
		t.Run(tt.kind, func(t *testing.T) {
			t.Parallel()
			var out strings.Builder
			s := scenario{tt.kind, tt.kind, 2, few, time.Second, time.Second, 0}
			if tt.kind == "held" {
				s.processes = 1
			}
			got, err := s.play(t.Context(), &out, 3*time.Second)
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range tt.want {
				if !slices.ContainsFunc(got, func(p string) bool { return strings.Contains(p, want) }) {
					t.Errorf("nobody noticed: %s", want)
				}
			}
			if tt.want == nil && len(got) > 0 || t.Failed() {
				t.Errorf("problems: %q\n%s", got, &out)
			}
		})
	}
}

func TestRequestsAreServed(t *testing.T) {
	var out strings.Builder
	s := scenario{"http", "http", 2, size{Keys: 20, Watchdog: 3 * time.Second, Work: time.Millisecond}, time.Second, time.Second, 100}
	if got, err := s.play(t.Context(), &out, 5*time.Second); err != nil || len(got) > 0 {
		t.Errorf("play = %q, %v\n%s", got, err, &out)
	}
}

func TestQuantile(t *testing.T) {
	var w waits
	for i := range 1000 {
		w.add(time.Duration(i+1) * time.Millisecond)
	}
	for _, tt := range []struct {
		p    float64
		want time.Duration
	}{{0.5, 500 * time.Millisecond}, {0.99, 990 * time.Millisecond}, {1, time.Second}} {
		if got := w.quantile(tt.p); got < tt.want || got > tt.want*104/100 {
			t.Errorf("quantile(%v) = %v, want %v", tt.p, got, tt.want)
		}
	}
	if got := new(waits).quantile(0.5); got != 0 {
		t.Errorf("quantile of nothing = %v", got)
	}
}
