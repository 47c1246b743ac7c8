package main

import (
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What README.md says is what figures.json has: nobody types a number.
func TestREADMEHasTheFiguresOfRecord(t *testing.T) {
	r, err := readReport(figuresFile)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(readmeFile)
	if err != nil {
		t.Fatal(err)
	}
	want, err := fill(string(text), r)
	if err != nil || want != string(text) {
		t.Errorf("README.md differs from figures.json (%v): go run . -readme", err)
	}
	for _, file := range r.drawn() {
		if _, err := os.Stat(filepath.Join(chartsDir, file)); err != nil {
			t.Error(err)
		}
	}
	for _, p := range goals {
		if f, ok := r.find(p.id, p.peer); !ok || f.Value == nil && f.Reason == "" {
			t.Errorf("%s = %+v, want a value or a reason", p.id, f)
		}
	}
}

func TestFillNeedsItsMarks(t *testing.T) {
	r := report{Machine: "made up"}
	for _, text := range []string{"", begin, end, end + begin} {
		if got, err := fill(text, r); err == nil {
			t.Errorf("fill(%q) = %q, want an error", text, got)
		}
	}
	got, err := fill("before\n"+begin+"\nold\n"+end+"\nafter\n", r)
	if err != nil || !strings.HasPrefix(got, "before\n") || !strings.HasSuffix(got, "\nafter\n") || !strings.Contains(got, "made up") || strings.Contains(got, "\nold\n") {
		t.Errorf("fill = %q, %v", got, err)
	}
}

func TestChartsCanBeLookedAt(t *testing.T) {
	s := samples{}
	for _, p := range plan {
		for i, peer := range []string{base, we, bestRival} {
			for round := range 3 {
				s.add(p.metric, peer, round, float64(10*(i+1)+round))
			}
		}
	}
	r := report{Figures: figures(s, madeUp)}
	dir := t.TempDir()
	if err := r.draw(dir); err != nil {
		t.Fatal(err)
	}
	if len(r.drawn()) != len(charts) {
		t.Errorf("drawn: %v", r.drawn())
	}
	for _, file := range r.drawn() {
		f, err := os.Open(filepath.Join(dir, file))
		if err != nil {
			t.Error(err)
			continue
		}
		picture, err := png.Decode(f)
		if err != nil || picture.Bounds().Dx() < 500 {
			t.Errorf("%s: %v", file, err)
		}
		_ = f.Close()
	}
	if err := (report{}).draw(dir); err != nil {
		t.Errorf("charts of nothing: %v", err)
	}
}
