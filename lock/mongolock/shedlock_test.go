package mongolock_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/latchkey-go/latchkey/internal/services"
)

// javaDir has the program with ShedLock in it.
const javaDir = "interop/java"

// build makes the program, from what is already here or else with what Maven fetches.
var build = sync.OnceValue(func() error {
	var out []byte
	var err error
	for _, offline := range []string{"-o", "-U"} {
		cmd := exec.Command("mvn", offline, "-q", "-B", "package")
		cmd.Dir = javaDir
		if out, err = cmd.CombinedOutput(); err == nil {
			return nil
		}
	}
	return fmt.Errorf("mvn package: %w\n%s", err, out)
})

// java starts the program and returns what it says first.
func java(tb testing.TB, args ...string) (*peer, string) {
	tb.Helper()
	if !services.Required("java") {
		tb.Skip("needs a JDK 17 and Maven, which fetches ShedLock; LATCHKEY_REQUIRE=java has it run")
	}
	if err := build(); err != nil {
		tb.Fatal(err)
	}
	target := filepath.Join(javaDir, "target")
	classPath := filepath.Join(target, "classes") + string(filepath.ListSeparator) + filepath.Join(target, "lib", "*")
	cmd := exec.Command("java", append([]string{"-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx128m", "-cp", classPath, "latchkey.Peer"}, args...)...)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		tb.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	p := &peer{cmd: cmd, stdin: stdin, stdout: bufio.NewScanner(stdout)}
	tb.Cleanup(p.kill)
	return p, p.line(tb)
}

// peer is a Java process with ShedLock; see Peer.java for what it understands.
type peer struct {
	cmd    *exec.Cmd
	stdin  io.Writer
	stdout *bufio.Scanner
	killed sync.Once
}

// startPeer starts a process whose ShedLock has its documents in coll.
func startPeer(tb testing.TB, uri string, coll *mongo.Collection) *peer {
	tb.Helper()
	p, hello := java(tb, uri, coll.Database().Name(), coll.Name())
	if hello != "ready" {
		tb.Fatalf("ShedLock says %q", hello)
	}
	return p
}

func (p *peer) line(tb testing.TB) string {
	tb.Helper()
	timer := time.AfterFunc(time.Minute, p.kill)
	defer timer.Stop()
	if !p.stdout.Scan() {
		tb.Fatalf("the Java process has ended: %v", p.stdout.Err())
	}
	return p.stdout.Text()
}

// tell gives a command and returns the answer.
func (p *peer) tell(tb testing.TB, words ...any) string {
	tb.Helper()
	if _, err := io.WriteString(p.stdin, strings.TrimSuffix(fmt.Sprintln(words...), "\n")+"\n"); err != nil {
		tb.Fatal(err)
	}
	return p.line(tb)
}

// must fails the test if the answer is not want.
func (p *peer) must(tb testing.TB, want string, words ...any) {
	tb.Helper()
	if got := p.tell(tb, words...); got != want {
		tb.Fatalf("%s: ShedLock says %q, want %q", fmt.Sprint(words...), got, want)
	}
}

func (p *peer) kill() {
	p.killed.Do(func() {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
	})
}
