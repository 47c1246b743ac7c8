package main

import (
	"path/filepath"
	"sync"
	"testing"

	"github.com/latchkey-go/latchkey/internal/redistest"
)

func TestTurnsAlternate(t *testing.T) {
	s := redistest.Start(t)
	var sides sync.WaitGroup
	var results [2]result
	board := filepath.Join(t.TempDir(), "board")
	for side := range results {
		sides.Go(func() {
			w := &worker{who: latchkeyItself(t), peers: map[string]peer{}}
			r, err := w.do(t.Context(), job{Do: "turns", Addr: s.Addr, Key: "k", Millis: 500, Board: board, Side: side})
			if err != nil {
				t.Error(err)
			}
			results[side] = r
		})
	}
	sides.Wait()
	a, b := results[0], results[1]
	if a.Done < 2 || b.Done < 2 || a.Done-b.Done > 1 || b.Done-a.Done > 1 || a.Overlap+b.Overlap > 0 || len(a.Gaps) == 0 {
		t.Errorf("sides = %+v and %+v, want as many turns on both", a, b)
	}
}

func TestHeldLocksAreMeasured(t *testing.T) {
	s := redistest.Start(t)
	w := &worker{who: latchkeyItself(t), peers: map[string]peer{}}
	r, err := w.do(t.Context(), job{Do: "hold", Addr: s.Addr, Key: "k", Count: 2000})
	if err != nil || r.Bytes < 100 || r.Bytes > 10_000 || r.Routine > 0.1 {
		t.Errorf("hold = %+v, %v", r, err)
	}
	if n, err := s.Client(t).DBSize(t.Context()).Result(); err != nil || n != 2000 {
		t.Errorf("%d locks in Redis, %v; want 2000", n, err)
	}
	for _, h := range w.holds {
		_ = h.Release(t.Context())
	}
	if _, err := w.do(t.Context(), job{Do: "nothing"}); err == nil {
		t.Error("a job that does not exist is no error")
	}
}

func latchkeyItself(t *testing.T) contestant {
	t.Helper()
	c, err := find(we)
	if err != nil {
		t.Fatal(err)
	}
	return c
}
