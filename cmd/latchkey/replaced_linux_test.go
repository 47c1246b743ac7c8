package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
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
				n, _ := rdb.PubSubNumSub(t.Context(), "redisson_lock__channel:{k}").Result()
				return n["redisson_lock__channel:{k}"] > 0
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
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", p.cmd.Process.Pid))
	for _, path := range threads {
		pids, _ := os.ReadFile(path)
		for pid := range strings.FieldsSeq(string(pids)) {
			name, _ := os.ReadFile("/proc/" + pid + "/comm")
			names = append(names, strings.TrimSpace(string(name)))
		}
	}
	return names
}
