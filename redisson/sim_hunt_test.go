package redisson_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// simHunt is how many seeds a mutant may outlive: a busy machine takes longer, and finds as many.
const simHunt = 2000

// hunt lets the simulation find the mutants, and returns how many it found.
func hunt(t *testing.T, mutants []mutant, workers int) (found int) {
	next := make(chan mutant)
	var mu sync.Mutex
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for m := range next {
				began := time.Now()
				what, err := m.find(t.TempDir())
				mu.Lock()
				if err != nil {
					t.Errorf("mutant %q: %v", m.name, err)
				} else {
					found++
					t.Logf("mutant %q: %s (%v)", m.name, what, time.Since(began).Round(time.Second/10))
				}
				mu.Unlock()
			}
		})
	}
	for _, m := range mutants {
		next <- m
	}
	close(next)
	all.Wait()
	return found
}

// find builds the mutant in dir and runs the simulation in it. It returns what the simulation found first.
func (m mutant) find(dir string) (what string, err error) {
	overlay, err := m.overlay(dir)
	if err != nil {
		return "", err
	}
	binary := filepath.Join(dir, "mutant.test")
	if out, err := exec.Command("go", "test", "-c", "-vet=off", "-gcflags=-l", "-ldflags=-s -w", "-overlay", overlay, "-o", binary, ".").CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	run := exec.Command(binary, "-test.run=^TestSim$", "-test.timeout=30m")
	run.Env = append(os.Environ(), fmt.Sprintf("%s=seeds=%d,until,%s", simVariable, simHunt, m.run))
	out, err := run.CombinedOutput()
	if exit := (*exec.ExitError)(nil); err == nil || !errors.As(err, &exit) {
		return "", fmt.Errorf("not found by %d seeds: %.500s", simHunt, out)
	}
	found := regexp.MustCompile(`(?m)^ *sim_test.go:\d+: (.*(` + m.want + `).*)$`).FindSubmatch(out)
	if found == nil {
		return "", fmt.Errorf("found something else than %s:\n%s", m.want, out[max(0, len(out)-2000):])
	}
	return string(found[1]), nil
}

// overlay writes the changed files, and a file that has the go command build with them.
func (m mutant) overlay(dir string) (path string, err error) {
	changed := map[string][]byte{}
	for _, e := range m.edits {
		source := changed[e.file]
		if source == nil {
			if source, err = os.ReadFile(e.file); err != nil {
				return "", err
			}
		}
		if n := bytes.Count(source, []byte(e.old)); n != 1 {
			return "", fmt.Errorf("%s has %q %d times: adapt the mutant", e.file, e.old, n)
		}
		changed[e.file] = bytes.Replace(source, []byte(e.old), []byte(e.new), 1)
	}
	here, err := os.Getwd()
	if err != nil {
		return "", err
	}
	replace := map[string]string{}
	for file, source := range changed {
		replace[filepath.Join(here, file)] = filepath.Join(dir, filepath.Base(file))
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(file)), source, 0o600); err != nil {
			return "", err
		}
	}
	for _, test := range simUnneeded() {
		replace[filepath.Join(here, test)] = "" // it is not there: that saves half of the time
	}
	list, _ := json.Marshal(map[string]any{"Replace": replace})
	path = filepath.Join(dir, "overlay.json")
	return path, os.WriteFile(path, list, 0o600)
}

// simUnneeded are the test files that the simulation does without.
func simUnneeded() (files []string) {
	tests, _ := filepath.Glob("*_test.go")
	for _, test := range tests {
		if !strings.HasPrefix(test, "sim_") && test != "export_test.go" {
			files = append(files, test)
		}
	}
	return files
}

// TestSimMutants keeps the mutants fit for the sources: what they replace must be there.
func TestSimMutants(t *testing.T) {
	for _, m := range simMutants {
		if _, err := m.overlay(t.TempDir()); err != nil {
			t.Errorf("mutant %q: %v", m.name, err)
		}
	}
}
