package check

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
)

var update = flag.Bool("update", false, "write what the commands in the documents print into them")

// block is a session in a document: lines that begin with "$ " are commands, the others are what they printed.
var block = regexp.MustCompile("(?ms)^( *)```console\n(.*?)^ *```$")

// session is one of them.
type session struct{ all, indent, text string }

func sessionsOf(page string) (found []session) {
	for _, m := range block.FindAllStringSubmatch(page, -1) {
		found = append(found, session{m[0], m[1], regexp.MustCompile("(?m)^"+m[1]).ReplaceAllString(m[2], "")})
	}
	return found
}

// printing is the block with what its commands have printed.
func (s session) printing(output string) string {
	return s.indent + "```console\n" + regexp.MustCompile("(?m)^(.)").ReplaceAllString(output, s.indent+"$1") + s.indent + "```"
}

// Whoever types what stands in the documents sees what stands there. Each session has a server of its own, on the port that Redis
// has by default as far as it can tell. Numbers and ids may differ.
func TestSessions(t *testing.T) {
	redisCLI, err := exec.LookPath("redis-cli")
	if err != nil {
		redistest.Missing(t, err)
	}
	server, err := redistest.Program()
	if err != nil {
		redistest.Missing(t, err)
	}
	if version, err := exec.Command(server, "--version").Output(); err != nil || !strings.Contains(string(version), "v=7.") {
		t.Skipf("the sessions were seen on Redis 7, and not on %s", version)
	}
	tools := t.TempDir()
	for _, program := range [][]string{{"build", "-o", tools, "./hold"}, {"build", "-C", "../../../cmd/latchkey", "-o", tools, "."}} {
		if out, err := exec.Command("go", program...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	pages, err := filepath.Glob("../*.md")
	if err != nil {
		t.Fatal(err)
	}
	type played struct {
		session
		output string
		err    error
	}
	var all sync.WaitGroup // of sessions, which sleep for most of their time
	byPage := map[string][]*played{}
	n := 0
	for _, page := range pages {
		for _, s := range sessionsOf(read(t, page)) {
			p := &played{session: s}
			port := redistest.FreePort(t)
			all.Go(func() { p.output, p.err = play(t, tools, redisCLI, server, port, s.text) })
			byPage[page] = append(byPage[page], p)
			n++
		}
	}
	all.Wait()
	for page, sessions := range byPage {
		text := read(t, page)
		for _, p := range sessions {
			switch {
			case p.err != nil:
				t.Errorf("%s: %v\n%s", page, p.err, p.output)
			case *update:
				text = strings.Replace(text, p.all, p.printing(p.output), 1)
			case plain(p.output) != plain(p.text):
				t.Errorf("%s says\n%s\nbut one sees\n%s", page, p.text, p.output)
			}
		}
		if *update {
			if err := os.WriteFile(page, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n < 15 {
		t.Errorf("%d sessions in the documents: that can't be all", n)
	}
}

// play types the commands of a session into a shell, and returns them with what they print.
func play(t *testing.T, tools, redisCLI, server, port, session string) (output string, err error) {
	dir := t.TempDir()
	for name, command := range map[string]string{
		"redis-cli":    redisCLI + ` --no-raw -p ` + port + ` "$@"`,
		"redis-server": server + ` --port ` + port + ` --bind 127.0.0.1 --logfile server.log "$@" --daemonize no`,
		"latchkey":     tools + `/latchkey --redis redis://127.0.0.1:` + port + ` "$@"`,
		"hold":         tools + `/hold -redis redis://127.0.0.1:` + port + ` "$@"`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\nexec "+command+"\n"), 0o755); err != nil {
			return "", err
		}
	}
	var script strings.Builder
	script.WriteString("redis-server() { command redis-server \"$@\" >/dev/null & server=$!; disown; until redis-cli PING >ping 2>&1; do sleep 0.02; done; }\nredis-server --save ''\n")
	for line := range strings.Lines(session) {
		if command, ok := strings.CutPrefix(line, "$ "); ok {
			fmt.Fprintf(&script, "cat <<'latchkey'\n%slatchkey\n%s", line, strings.ReplaceAll(command, "localhost:6379", "127.0.0.1:"+port))
		}
	}
	script.WriteString("kill -INT $(jobs -p) 2>kills\nwait\nkill -KILL $server 2>kills\nexit 0\n")
	if err := os.WriteFile(filepath.Join(dir, "session"), []byte(script.String()), 0o755); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	shell := exec.CommandContext(ctx, "bash", "session")
	shell.Dir, shell.Env, shell.WaitDelay = dir, append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH")), 10*time.Second
	shell.SysProcAttr = redistest.Apart()
	shell.Cancel = func() error { return syscall.Kill(-shell.Process.Pid, syscall.SIGKILL) } // the server, too
	out, err := shell.CombinedOutput()
	seen := strings.NewReplacer("127.0.0.1:"+port, "127.0.0.1:6379", "\r", "").Replace(string(out))
	return regexp.MustCompile(`(?m)^session: line .*\n`).ReplaceAllString(seen, ""), err // a shell's word on jobs that were killed
}

// plain is a session without what differs each time.
func plain(session string) string {
	for _, what := range []struct{ pattern, by string }{
		{`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`, "<id>"},
		{`\d+(\.\d+)?(ms|µs|s)\b`, "<time>"},
		{`[0-9a-f]{40}`, "<digest>"},
		{`\d{3,}|(user_script|uptime_in_seconds):\d+`, "<number>"},
		{` +`, " "},
	} {
		session = regexp.MustCompile(what.pattern).ReplaceAllString(session, what.by)
	}
	return session
}
