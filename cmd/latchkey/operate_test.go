package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
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
	"github.com/redis/go-redis/v9"
)

func TestFree(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	rdb := s.Client(t)
	stock(t, rdb)
	for _, tt := range []struct {
		args   []string
		status int
		says   string
	}{
		{[]string{"order:42"}, 64, "add --yes"},
		{[]string{"--yes", "none"}, 1, "nobody holds it"},
		{[]string{"--yes", "text"}, 65, "the key of something else"},
		{[]string{"--yes", "permits"}, 65, "only locks can be freed"},
		{[]string{"--yes", "order:42"}, 0, "order:42 is freed; it was held by " + javaClient},
		{[]string{"--yes", "rw"}, 0, "rw is freed; it was held by write"},
		{[]string{"--yes", "--quoted", `"a\x1b[31m\n\xff\u202e"`}, 0, "is freed"},
	} {
		status, out, err := result(t, at(s), append([]string{"free"}, tt.args...)...)
		if status != tt.status || !strings.Contains(out+err, tt.says) {
			t.Errorf("free %q = %d, %q, want %d, %q", tt.args, status, out+err, tt.status, tt.says)
		}
	}
	if n := rdb.Exists(t.Context(), "order:42", "rw", hostile).Val(); n != 0 {
		t.Errorf("%d are still there", n)
	}
	if n := rdb.Exists(t.Context(), "text", "fair", "fenced", "counter", "user:7").Val(); n != 5 {
		t.Errorf("only %d of 5 others are left", n)
	}
}

func TestFreeEndsTheCommandOfAnotherProcess(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p := start(t, at(s), "run", "--name", "orders-7f9c", "k", "--", "sh", "-c", "echo in; exec sleep 60")
	p.out.await(t, "in")
	eventually(t, "the holder says who it is", func() bool {
		_, out, _ := result(t, at(s), "show", "k")
		return strings.Contains(out, "holder    orders-7f9c on ") && strings.Contains(out, ", pid "+itoa(p.cmd.Process.Pid))
	})
	rdb := s.Client(t)
	eventually(t, "the holder listens", func() bool {
		channels, _ := rdb.PubSubChannels(t.Context(), "latchkey_client:*").Result()
		return len(channels) == 1
	})
	asked := time.Now()
	if status, _, err := result(t, at(s), "free", "--yes", "k"); status != 0 {
		t.Fatalf("free: %d, %s", status, err)
	}
	if status := p.status(); status != 76 {
		t.Errorf("status %d, want 76", status)
	}
	if took := time.Since(asked); took > 5*time.Second { // the next renewal is in 10s
		t.Errorf("the holder was told after %v", took)
	}
	if said := p.err.rest(); !strings.Contains(said, "freed by hand") {
		t.Errorf("it said %q", said)
	}
	if got := keys(t, s.Client(t)); !strings.HasPrefix(got, "latchkey_receipt:{k}:") || strings.Contains(got, " ") {
		t.Errorf("left in Redis: %q, want the receipt, which ends by itself", got)
	}
}

func TestWatchTellsAndRecovers(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	rdb := s.Client(t)
	p := start(t, at(s), "watch", "--interval", "20ms", "--timeout", "500ms", "k*")
	holder := start(t, at(s), "run", "k", "--", "cat")
	p.out.await(t, "held     k  by ")
	rdb.HSet(t.Context(), "other", goClient+":1", "1") // is not asked for
	waiter := start(t, at(s), "run", "--wait", "forever", "k", "--", "true")
	p.out.await(t, "waiting  k  1")
	_ = holder.stdin.Close()
	holder.status()
	waiter.status()
	p.out.await(t, "free     k")
	s.Kill(t)
	p.err.await(t, "no answer from "+at(s))
	s.Restart(t)
	p.err.await(t, "answers again after")
	rdb.HSet(t.Context(), "k2", goClient+":1", "1")
	if line := p.out.await(t, "k2"); !strings.Contains(line, "held     k2  by "+goClient) {
		t.Errorf("it said %q", line)
	}
	p.signal(syscall.SIGINT)
	if status := p.status(); status != 130 {
		t.Errorf("status %d, want 130", status)
	}
	if out := p.out.rest(); strings.Contains(out, "other") {
		t.Errorf("it told of another lock:\n%s", out)
	}
}

// Where others have very many keys, Redis is not searched all the time, and what was found is followed as closely as asked.
func TestWatchAmongManyOthers(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	rdb := s.Client(t)
	const others = "for i = 1, 200000 do redis.call('set', 'other:' .. i, '') end"
	if err := rdb.Eval(t.Context(), others, nil).Err(); err != nil && !errors.Is(err, redis.Nil) {
		t.Fatal(err)
	}
	rdb.HSet(t.Context(), "k", goClient+":1", "1")
	scans := func() (n int) {
		for line := range strings.Lines(rdb.Info(t.Context(), "commandstats").Val()) {
			_, _ = fmt.Sscanf(line, "cmdstat_scan:calls=%d", &n)
		}
		return n
	}
	begun := time.Now()
	p := start(t, at(s), "watch", "--fast", "--interval", "20ms")
	p.out.await(t, "held     k  by ")
	search, took := scans(), time.Since(begun)
	if search == 0 {
		t.Fatal("it did not search")
	}
	<-time.After(10 * took)
	if n := scans() - search; n > 4*search {
		t.Errorf("%.1f searches in ten times as long as one took, with the program's start", float64(n)/float64(search))
	}
	rdb.HSet(t.Context(), "k", javaClient+":1", "1")
	p.out.await(t, "held     k  by ")
}

func TestWatchInJSON(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	stock(t, s.Client(t))
	p := start(t, at(s), "watch", "-o", "json", "order:*")
	var event struct {
		Event  string `json:"event"`
		Object object `json:"object"`
	}
	if err := json.Unmarshal([]byte(p.out.await(t, "order:42")), &event); err != nil || event.Event != "held" || len(event.Object.Holders) != 1 {
		t.Errorf("%+v, %v", event, err)
	}
	denied := strings.Replace(at(s), "//", "//nobody:wrong@", 1)
	if status, _, _ := result(t, denied, "watch"); status != 77 {
		t.Errorf("with a wrong password: status %d", status)
	}
}

// All commands have the same statuses for a server that does not answer, or refuses.
func TestCommandsSayThatRedisIsDown(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	for _, args := range [][]string{{"ls"}, {"show", "k"}, {"free", "--yes", "k"}, {"doctor"}, {"explain", "k", "--one-key", "--state"}} {
		status, out, err := result(t, "redis://:secret@127.0.0.1:1", args...)
		if status != 69 || !strings.Contains(err, "no answer from redis://:xxxxx@127.0.0.1:1") || out != "" {
			t.Errorf("%v = %d, %q, %q", args, status, out, err)
		}
		status, _, err = result(t, strings.Replace(at(s), "//", "//nobody:secret@", 1), args...)
		if status != 77 || !strings.Contains(err, "WRONGPASS") || strings.Contains(err, "secret") {
			t.Errorf("%v with a wrong password = %d, %q", args, status, err)
		}
	}
}

func TestFullDiskIsNoOutage(t *testing.T) {
	t.Parallel()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer full.Close()
	p := startIn(t, "", func(c *exec.Cmd) { c.Stdout = full }, "decode", "k")
	if status := p.status(); status != 70 {
		t.Errorf("status %d, want 70: %s", status, p.err.rest())
	}
}

// README.md and the help have the statuses of status.go.
func TestStatusesAreDocumented(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, status := range []int{statusFound, statusUsage, statusData, statusNoAnswer, statusInternal, statusBusy, statusLost, statusRefused, statusMaxHold, statusNoExec, statusNotFound, statusSignal} {
		if !regexp.MustCompile(`(?m)^\| ` + itoa(status) + `\b`).Match(readme) {
			t.Errorf("README.md has no line for status %d", status)
		}
	}
	for _, c := range (&app{}).root().Commands() {
		if c.Runnable() && !c.Hidden && !bytes.Contains(readme, []byte("`latchkey "+c.Name())) && c.Name() != "help" {
			t.Errorf("README.md does not show latchkey %s", c.Name())
		}
		if !strings.Contains(c.Long, "xit status") && c.Name() != "completion" && c.Name() != "help" {
			t.Errorf("the help of %s has no exit statuses", c.Name())
		}
	}
	files, err := filepath.Glob("testdata/*.golden")
	if err != nil || len(files) < 30 {
		t.Errorf("%d golden files, %v", len(files), err)
	}
}

func itoa(n int) string { return strconv.Itoa(n) }
