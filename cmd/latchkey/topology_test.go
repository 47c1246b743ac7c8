package main

import (
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/latchkey-go/latchkey/internal/redistest"
)

// session uses the commands on servers of any sort.
func session(t *testing.T, redisURL string) {
	t.Helper()
	for _, kind := range [][]string{{"plain"}, {"fair"}, {"read"}, {"write"}, {"fenced"}, {"permit", "--limit", "1"}} {
		key := "order:" + kind[0]
		args := append([]string{"run", "--kind"}, kind...)
		p := start(t, redisURL, append(args, key, "--", "sh", "-c", "echo in; read -r _ || true")...)
		p.out.await(t, "in")
		if status, out, err := result(t, redisURL, "ls"); status != 0 || strings.Count(out, key) != 1 {
			t.Errorf("%s: ls = %d, %q, %q", key, status, out, err)
		}
		if status, out, err := result(t, redisURL, "show", key); status != 0 || !strings.Contains(out, "holder") {
			t.Errorf("%s: show = %d, %q, %q", key, status, out, err)
		}
		if status, _, _ := result(t, redisURL, append(slices.Clip(args), key, "--", "true")...); kind[0] == "read" && status != 0 || kind[0] != "read" && status != 75 {
			t.Errorf("%s: a second one has status %d", key, status)
		}
		_ = p.stdin.Close()
		if status := p.status(); status != 0 {
			t.Errorf("%s: status %d, %s", key, status, p.err.rest())
		}
	}
	status, out, err := result(t, redisURL, "doctor", "--key", "order:1")
	if status != 0 || !regexp.MustCompile(`(?m)^ok +rights +(127.0.0.1:\d+: )?Lock`).MatchString(out) {
		t.Errorf("doctor = %d, %s, %s", status, out, err)
	}
}

func TestCluster(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 0)
	session(t, "redis://"+c.Masters[0].Addr+"?addr="+c.Masters[1].Addr)
}

func TestSentinels(t *testing.T) {
	t.Parallel()
	s := redistest.StartSentinels(t)
	session(t, "redis://"+s.Addrs[0]+"?master_name="+s.Name+"&addr="+s.Addrs[1])
}

func TestOneServer(t *testing.T) {
	t.Parallel()
	session(t, redistest.Start(t).Addr) // host:port will do
}

func TestCompletionIsAScript(t *testing.T) {
	status, out, err := result(t, "", "completion", "bash")
	if status != 0 || err != "" {
		t.Fatalf("%d, %s", status, err)
	}
	bash, e := exec.LookPath("bash")
	if e != nil {
		t.Skip("no bash here")
	}
	cmd := exec.Command(bash, "-n")
	cmd.Stdin = strings.NewReader(out)
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("bash: %v, %s", err, said)
	}
}
