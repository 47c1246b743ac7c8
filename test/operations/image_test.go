package operations

import (
	"bytes"
	"context"
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/lock"
)

// The Dockerfile of the command line, without an engine: its build step is run as it stands there, and what comes out of it runs in a
// folder that has nothing else in it; as root, with that folder as its root.
func TestImage(t *testing.T) {
	if runtime.GOOS != "linux" || os.Getenv("LATCHKEY_IMAGE") == "" {
		t.Skip("images are of Linux, and are built with LATCHKEY_IMAGE=1, as .ci/services does: that compiles all anew")
	}
	binary := build(t)
	file, err := elf.Open(binary)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for _, p := range file.Progs {
		if p.Type == elf.PT_INTERP || p.Type == elf.PT_DYNAMIC {
			t.Errorf("it is linked dynamically: it has a segment %v", p.Type)
		}
	}

	s := redistest.Start(t)
	client := open(t, "redis://"+s.Addr)
	if _, err := client.Acquire(t.Context(), lock.Request{Key: "order:42"}); err != nil {
		t.Fatal(err)
	}
	in := image{t: t, dir: filepath.Dir(binary), env: []string{"LATCHKEY_REDIS_URL=redis://" + s.Addr}}
	for _, tt := range []struct {
		args string
		exit int
		want string
	}{
		{"--version", 0, "latchkey"},
		{"doctor", 0, "noeviction"},
		{"ls order:*", 0, client.ID()},
		{"show order:42", 0, client.ID()},
		{"decode order:42", 0, "order:42"},
		{"free --yes order:42", 0, "is freed"},
		{"completion bash", 0, "bash"},
		{"run job -- /latchkey ls job", 0, "job"}, // a command that is in the image
		{"run job -- ls", 127, "not found"},
	} {
		in.rooted = os.Geteuid() == 0 && !strings.HasPrefix(tt.args, "run ") // which needs the /proc that engines mount
		out, exit := in.run(tt.args)
		if exit != tt.exit || !strings.Contains(out, tt.want) {
			t.Errorf("latchkey %s: %d, %s\nwant %d, %s", tt.args, exit, out, tt.exit, tt.want)
		}
	}
}

// image is a folder with the binary.
type image struct {
	t      *testing.T
	dir    string
	env    []string
	rooted bool
}

func (in image) run(args string) (out string, exit int) {
	in.t.Helper()
	ctx, cancel := context.WithTimeout(in.t.Context(), 30*time.Second)
	defer cancel()
	name := filepath.Join(in.dir, "latchkey")
	cmd := exec.CommandContext(ctx, name, strings.Fields(args)...) //nolint:gosec // it was just built
	cmd.Dir, cmd.Env = in.dir, in.env
	if in.rooted {
		cmd.Path, cmd.Dir = "/latchkey", "/"
		cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: in.dir, Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	} else {
		cmd.Args = strings.Fields(strings.ReplaceAll(name+" "+args, " /latchkey", " "+name))
	}
	var all bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(""), &all, &all
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		in.t.Fatal(err)
	}
	return all.String(), cmd.ProcessState.ExitCode()
}

// build runs the step of the Dockerfile that makes the binary, and checks that the image has what it makes.
func build(t *testing.T) (binary string) {
	t.Helper()
	const root = "../.."
	text, err := os.ReadFile(filepath.Join(root, "cmd/latchkey/Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	step := regexp.MustCompile(`(?m)^RUN (.* -o (\S+) .*)$`).FindStringSubmatch(string(text))
	_, last, _ := strings.Cut(string(text), "\nFROM scratch\n")
	if step == nil || strings.Count(string(text), "\nRUN ") != 1 || !strings.Contains(last, "\nCOPY --from=build "+step[2]+" /latchkey\n") ||
		!strings.Contains(last, "\nENTRYPOINT [\"/latchkey\"]\n") {
		t.Fatalf("another Dockerfile than this test knows:\n%s", text)
	}
	mod, err := os.ReadFile(filepath.Join(root, "cmd/latchkey/go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	if from := regexp.MustCompile(`(?m)^FROM golang:(\S+) AS build$`).FindStringSubmatch(string(text)); from == nil || !strings.Contains(string(mod), "\ngo "+from[1]) {
		t.Errorf("%v is not the Go of go.mod", from)
	}
	dir := t.TempDir()
	for folder := dir; folder != os.TempDir() && folder != "/"; folder = filepath.Dir(folder) { // for the image's user
		if err := os.Chmod(folder, 0o755); err != nil { //nolint:gosec // it has nothing in it
			t.Fatal(err)
		}
	}
	cmd := exec.Command("sh", "-c", strings.ReplaceAll(step[1], step[2], filepath.Join(dir, "latchkey"))) //nolint:gosec // the step
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", step[1], err, out)
	}
	return filepath.Join(dir, "latchkey")
}
