package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
)

// asProgram in the environment makes this binary the program. As a worker it is recognized by its flag.
const asProgram = "BENCHMARKS_TEST_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" || len(os.Args) > 1 && os.Args[1] == workerFlag {
		main()
		return
	}
	os.Exit(m.Run())
}

// quick is a run that takes no time and says nothing about speed.
func quick(t *testing.T, args ...string) (report, string, error) {
	t.Helper()
	dir := t.TempDir()
	var out bytes.Buffer
	err := run(t.Context(), append([]string{"-rounds", "2", "-slice", "30ms", "-out", dir}, args...), nil, &out, &out)
	r, readErr := readReport(filepath.Join(dir, "figures.json"))
	if readErr != nil {
		t.Fatalf("%v after %v\n%s", readErr, err, out.String())
	}
	return r, out.String(), err
}

func TestARunGivesFigures(t *testing.T) {
	redistest.Start(t) // there must be a redis-server
	r, out, _ := quick(t, "-only", "^(pairs|one key|reentry|grpc|http)$", "-peers", "^(go-redis|bare|latchkey|rueidislock)$")
	for _, id := range []string{"uncontended_pair", "uncontended_floor_ratio", "uncontended_allocs", "one_key_rate", "reentry_commands", "http_us", "grpc_us"} {
		if f, ok := r.find(id, we); !ok || f.Value == nil || *f.Value <= 0 || *f.Min > *f.Value || *f.Max < *f.Value {
			t.Errorf("%s = %+v\n%s", id, f, out)
		}
	}
	for _, p := range goals {
		if f, ok := r.find(p.id, p.peer); !ok || f.Value == nil && f.Reason == "" {
			t.Errorf("%s = %+v, want a value or a reason", p.id, f)
		}
	}
}

func TestWithoutRedisTheRestRuns(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	r, out, err := quick(t)
	if err != nil || !strings.Contains(out, "no Redis: there is no redis-server on PATH; what needs none runs\n") {
		t.Errorf("run = %v\n%s", err, out)
	}
	if f, _ := r.find("key_ns", "cel-go"); f.Value == nil || *f.Value <= 0 {
		t.Errorf("key_ns of cel-go = %+v, want a value\n%s", f, out)
	}
	if f, _ := r.find("turns", we); f.Value != nil || f.Reason != "there is no redis-server" {
		t.Errorf("turns = %+v, want a reason", f)
	}
}

func TestMistakesInTheFlags(t *testing.T) {
	for _, args := range [][]string{{"-rounds", "0"}, {"-only", "("}, {"-slice", "1ms"}, {"more"}, {"-nope"}} {
		var out bytes.Buffer
		if err := run(t.Context(), args, nil, &out, &out); !errors.Is(err, errUsage) || out.Len() == 0 {
			t.Errorf("%v: %v, %q", args, err, out.String())
		}
	}
	if err := run(t.Context(), []string{"-only", "no such figure"}, nil, nil, nil); err == nil {
		t.Error("-only something that does not exist is no error")
	}
}

func TestAPeerThatHangsIsCutOff(t *testing.T) {
	p, err := startProcess(t.Context(), []string{"sleep", "60"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.do(t.Context(), job{Do: "load"}, 50*time.Millisecond); !errors.Is(err, errHung) {
		t.Errorf("do = %v, want errHung", err)
	}
	if err := p.cmd.Process.Signal(syscall.Signal(0)); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("the process is still there: %v", err)
	}
}

func TestAPeerThatFailsLeavesTheRest(t *testing.T) {
	var out bytes.Buffer
	b := &bench{out: &out, peers: regexp.MustCompile(""), failed: map[string]string{}, broken: map[string]bool{}, said: map[string]bool{}, workers: map[string][]*process{}}
	before := len(b.all(everyone))
	_ = b.fail(t.Context(), we, fmt.Errorf("%w: it was not back", errHung))
	if got := b.all(everyone); len(got) != before-1 || out.String() != "latchkey: cut off: it was not back; the rest runs\n" {
		t.Errorf("%d of %d peers are left, and it says %q", len(got), before, out.String())
	}
}

// Ctrl-C ends the server and the workers, too.
func TestCtrlCEndsEverything(t *testing.T) {
	redistest.Start(t) // there must be a redis-server
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], "-only", "^one key$", "-peers", "^latchkey$", "-slice", "20s", "-out", t.TempDir())
	cmd.Env = append(os.Environ(), asProgram+"=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	addr := regexp.MustCompile(`redis-server \S+ at (\S+)`)
	var server string
	for lines := bufio.NewScanner(out); server == "" && lines.Scan(); {
		if found := addr.FindStringSubmatch(lines.Text()); found != nil {
			server = found[1]
		}
	}
	var started []int
	for len(started) < 2 && ctx.Err() == nil { // redis-server and a worker
		started = children(cmd.Process.Pid)
		sleep(ctx, 10*time.Millisecond)
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil || ctx.Err() != nil {
		t.Errorf("after Ctrl-C: %v, %v; want an exit status of 1", err, ctx.Err())
	}
	if conn, err := net.Dial("tcp", server); err == nil {
		_ = conn.Close()
		t.Errorf("something still listens at %s", server)
	}
	for _, pid := range started {
		if alive(pid) {
			t.Errorf("process %d is still there", pid)
		}
	}
}

// children are the processes that pid has started, and that it has not ended.
func children(pid int) (all []int) {
	paths, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range paths {
		child, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if state, parent := status(child); parent == pid && state != "Z" {
			all = append(all, child)
		}
	}
	return all
}

func alive(pid int) bool {
	state, _ := status(pid)
	return state != "" && state != "Z"
}

// status returns the state and the parent of a process, as /proc has them behind the name in parentheses.
func status(pid int) (state string, parent int) {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, _ := strings.Cut(string(text), ") ")
	_, _ = fmt.Sscan(rest, &state, &parent)
	return state, parent
}

func TestEachRoundHasProcessesOfItsOwn(t *testing.T) {
	b := &bench{out: io.Discard, workers: map[string][]*process{}}
	defer b.close()
	for _, peer := range []string{we, java} {
		p, err := startProcess(t.Context(), []string{"sleep", "60"})
		if err != nil {
			t.Fatal(err)
		}
		b.workers[peer] = []*process{p}
	}
	old := b.workers[we][0]
	if err := b.runRound(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if len(b.workers[we]) != 0 || old.cmd.ProcessState == nil {
		t.Error("a worker lives longer than its round")
	}
	if len(b.workers[java]) != 1 {
		t.Error("the JVM, which is measured warm, is gone")
	}
}
