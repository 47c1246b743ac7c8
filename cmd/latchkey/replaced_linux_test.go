package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/latchkey-go/latchkey/internal/redistest"
)

// An upgrade replaces the file of a program that may wait for long. What it starts of itself is still itself.
func TestProgramIsReplacedWhileItWaits(t *testing.T) {
	t.Parallel()
	for name, replace := range map[string]func(path string) error{
		"removed": os.Remove,
		"replaced": func(path string) error {
			if err := os.WriteFile(path+".new", []byte("#!/bin/sh\nexit 3\n"), 0o700); err != nil {
				return err
			}
			return os.Rename(path+".new", path)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t)
			path := filepath.Join(t.TempDir(), "latchkey")
			holder := start(t, at(s), "run", "k", "--", "sh", "-c", "echo in; read -r _")
			holder.out.await(t, "in")
			waiter := startIn(t, at(s), func(c *exec.Cmd) {
				program, err := os.ReadFile(c.Path)
				if err == nil {
					err = os.WriteFile(path, program, 0o700)
				}
				if err != nil {
					t.Fatal(err)
				}
				c.Path = path
			}, "run", "--wait", "forever", "k", "--", "sh", "-c", "echo in; cat")
			rdb := s.Client(t)
			eventually(t, "the other one waits", func() bool {
				channels, _ := rdb.PubSubChannels(t.Context(), "redisson_lock__channel:{k}*").Result()
				return len(channels) > 0
			})
			if err := replace(path); err != nil {
				t.Fatal(err)
			}
			_ = holder.stdin.Close()
			waiter.out.await(t, "in")
			eventually(t, "who lists the processes finds the warden", func() bool { return slices.Contains(children(waiter), "latchkey-warden") })
			_ = waiter.stdin.Close()
			if status := waiter.status(); status != 0 {
				t.Errorf("status %d, %s", status, waiter.err.rest())
			}
		})
	}
}

// children are the names of the processes that a program has started.
func children(p *program) (names []string) {
	all, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range all {
		stat, _ := os.ReadFile(path) // begins with 1 (name) S 0, the last of which is the parent
		_, rest, _ := strings.Cut(string(stat), "(")
		name, rest, _ := strings.Cut(rest, ") ")
		if parent := strings.Fields(rest + " - -")[1]; parent == strconv.Itoa(p.cmd.Process.Pid) {
			names = append(names, name)
		}
	}
	return names
}
