package doctest

import (
	"context"
	"encoding/json"
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

// block is a session in a document: lines that begin with "$ " are commands, the others are what they printed.
var block = regexp.MustCompile("(?ms)^( *)```console\n(.*?)^ *```$")

// session is one of them.
type session struct {
	all, indent, text string

	output string
	err    error
}

func sessionsOf(page string) (found []*session) {
	for _, m := range block.FindAllStringSubmatch(page, -1) {
		found = append(found, &session{all: m[0], indent: m[1], text: regexp.MustCompile("(?m)^"+m[1]).ReplaceAllString(m[2], "")})
	}
	return found
}

// printing is the block with what its commands have printed.
func (s *session) printing() string {
	return s.indent + "```console\n" + regexp.MustCompile("(?m)^(.)").ReplaceAllString(s.output, s.indent+"$1") + s.indent + "```"
}

// Player plays the sessions of documents.
type Player struct {
	// Root is the folder of the repository, in which "go" runs.
	Root string
	// Tools are the folders of programs that sessions call by their names, each of which takes the URL of a Redis in a flag --redis.
	Tools []string
}

// shell is what sessions are played with.
type shell struct {
	Player
	tools, redisCLI, server, goCommand string
}

// Play types the sessions of the pages, each against a server of its own, on the port that Redis has by default as far
// as it can tell; programs under the root that listen on localhost:8080 find a port that is free. A reader who types
// the commands of a document must see its answers: but for numbers of three digits, times and ids, a difference fails
// the test. Sessions were seen on Redis 7, and are skipped on others. With the flag -update, Play writes what it sees
// into the documents instead. It returns how many sessions there are.
func (p Player) Play(t *testing.T, pages ...string) (n int) {
	t.Helper()
	sh := p.open(t)
	var all sync.WaitGroup // of sessions, which sleep for most of their time
	byPage := map[string][]*session{}
	for _, page := range pages {
		byPage[page] = sessionsOf(read(t, page))
		for _, s := range byPage[page] {
			dir, port, own := t.TempDir(), redistest.FreePort(t), redistest.FreePort(t)
			all.Go(func() { s.output, s.err = sh.play(t.Context(), dir, port, own, s.text) })
			n++
		}
	}
	all.Wait()
	for page, sessions := range byPage {
		judge(t, page, sessions)
	}
	return n
}

func judge(t *testing.T, page string, sessions []*session) {
	t.Helper()
	text := read(t, page)
	for _, s := range sessions {
		switch {
		case s.err != nil:
			t.Errorf("%s: %v\n%s", page, s.err, s.output)
		case plain(s.output) == plain(s.text):
		case *update:
			text = strings.Replace(text, s.all, s.printing(), 1)
		default:
			t.Errorf("%s says\n%s\nbut one sees\n%s", page, s.text, s.output)
		}
	}
	if *update {
		if err := os.WriteFile(page, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// open finds and builds the programs that sessions call.
func (p Player) open(t *testing.T) *shell {
	t.Helper()
	sh := &shell{Player: p, tools: t.TempDir()}
	var err error
	if sh.Root, err = filepath.Abs(p.Root); err != nil {
		t.Fatal(err)
	}
	if sh.redisCLI, err = exec.LookPath("redis-cli"); err != nil {
		redistest.Missing(t, err)
	}
	if sh.goCommand, err = exec.LookPath("go"); err != nil {
		t.Fatal(err)
	}
	if sh.server, err = redistest.Program(); err != nil {
		redistest.Missing(t, err)
	}
	if version, err := exec.Command(sh.server, "--version").Output(); err != nil || !strings.Contains(string(version), "v=7.") {
		t.Skipf("the sessions were seen on Redis 7, and not on %s", version)
	}
	for _, folder := range p.Tools {
		if out, err := exec.Command(sh.goCommand, "build", "-C", folder, "-o", sh.tools, ".").CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", folder, err, out)
		}
	}
	return sh
}

// play types the commands of a session into a shell, and returns them with what they print.
func (sh *shell) play(ctx context.Context, dir, port, own, session string) (output string, err error) {
	if err := sh.overlay(dir, port, own, session); err != nil {
		return "", err
	}
	url := "redis://127.0.0.1:" + port
	commands := map[string]string{
		"redis-cli":    `exec ` + sh.redisCLI + ` --no-raw -p ` + port + ` "$@"`,
		"redis-server": `exec ` + sh.server + ` --port ` + port + ` --bind 127.0.0.1 --logfile server.log "$@" --daemonize no`,
		"go": "at=" + sh.Root + "\n" + `[ "$1" != -C ] || { at=$at/$2 && shift 2; }; [ "$1" = run ] || { cd "$at" && exec ` + sh.goCommand + ` "$@"; }` + "\nprogram=" + dir + `/$(basename "$2").program` + "\n" +
			sh.goCommand + ` build -C "$at" -overlay ` + dir + `/overlay.json -o "$program" "$2" && shift 2 && exec "$program" "$@"`,
	}
	for _, folder := range sh.Tools {
		tool := filepath.Base(folder)
		commands[tool] = "exec " + filepath.Join(sh.tools, tool) + " --redis " + url + ` "$@"`
	}
	for name, command := range commands {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+command+"\n"), 0o755); err != nil {
			return "", err
		}
	}
	addresses := strings.NewReplacer("localhost:6379", "127.0.0.1:"+port, "localhost:8080", "127.0.0.1:"+own)
	var script strings.Builder
	script.WriteString("redis-server() { command redis-server \"$@\" >/dev/null & server=$!; disown; until redis-cli PING >ping 2>&1; do sleep 0.02; done; }\nredis-server --save ''\n")
	for line := range strings.Lines(session) {
		command, ok := strings.CutPrefix(line, "$ ")
		if !ok {
			continue
		}
		fmt.Fprintf(&script, "cat <<'latchkey'\n%slatchkey\n%s", line, addresses.Replace(command))
		if running.MatchString(command) && strings.HasSuffix(command, "&\n") { // a server: whoever reads waits until it listens
			fmt.Fprintf(&script, "for i in $(seq 600); do (exec 3<>/dev/tcp/127.0.0.1/%s) 2>refused && break; sleep 0.1; done\n", own)
		}
	}
	script.WriteString("kill -INT $(jobs -p) 2>kills\nwait\nkill -KILL $server 2>kills\nexit 0\n")
	if err := os.WriteFile(filepath.Join(dir, "session"), []byte(script.String()), 0o755); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	bash := exec.CommandContext(ctx, "bash", "session")
	bash.Dir, bash.Env, bash.WaitDelay = dir, append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH")), 10*time.Second
	bash.SysProcAttr = redistest.Apart()
	bash.Cancel = func() error { return syscall.Kill(-bash.Process.Pid, syscall.SIGKILL) } // the server, too
	out, err := bash.CombinedOutput()
	host, _ := os.Hostname()
	seen := strings.NewReplacer(" on "+host+",", " on web-1,", "127.0.0.1:"+port, "127.0.0.1:6379", "127.0.0.1:"+own, "localhost:8080", "\r", "").Replace(string(out))
	// A shell has its word on jobs that were killed, and go-redis on a connection that it gives up.
	return regexp.MustCompile(`(?m)^(session: line |redis: \d{4}/).*\n`).ReplaceAllString(seen, ""), err
}

var running = regexp.MustCompile(`\bgo (?:-C (\S+) )?run (\./[^\s;]+)`)

// overlay writes the files of the programs that a session runs once more, with the addresses of this session, for go's flag -overlay.
func (sh *shell) overlay(dir, port, own, session string) error {
	replaced := map[string]string{}
	for _, m := range running.FindAllStringSubmatch(session, -1) {
		files, err := filepath.Glob(filepath.Join(sh.Root, m[1], m[2], "*.go"))
		if err != nil {
			return err
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			replaced[file] = filepath.Join(dir, fmt.Sprint("overlay", len(replaced), ".go.txt"))
			text = []byte(strings.NewReplacer("localhost:6379", "127.0.0.1:"+port, "localhost:8080", "127.0.0.1:"+own).Replace(string(text)))
			if err := os.WriteFile(replaced[file], text, 0o644); err != nil {
				return err
			}
		}
	}
	text, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "overlay.json"), text, 0o644)
}

// plain is a session without what differs each time.
func plain(session string) string {
	for _, what := range []struct{ pattern, by string }{
		{`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`, "<id>"},
		{`\d+(\.\d+)?(ms|µs|s)\b`, "<time>"},
		{`[0-9a-f]{40}`, "<digest>"},
		{`\b\d{4}-\d\d-\d\d(T[\d:]+Z)?\b`, "<date>"},
		{`\d{3,}|(user_script|uptime_in_seconds):\d+`, "<number>"},
		{` +`, " "},
	} {
		session = regexp.MustCompile(what.pattern).ReplaceAllString(session, what.by)
	}
	return session
}
