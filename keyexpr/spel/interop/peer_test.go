package interop

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// question is one line to the Java program; see the comment on Peer.java.
type question struct {
	Mode  string   `json:"mode"`
	Text  string   `json:"text,omitempty"`
	Name  string   `json:"name,omitempty"`
	Texts []string `json:"texts,omitempty"`
	Order *Order   `json:"order"`
}

// peer is the Java program. Questions are answered in their order.
type peer struct {
	mu     sync.Mutex
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout *bufio.Reader
}

// startPeer builds and starts the Java program, or skips the test where nobody asked for it.
func startPeer(tb testing.TB) *peer {
	tb.Helper()
	required := slices.Contains(strings.Split(os.Getenv("LATCHKEY_REQUIRE"), ","), "spring")
	if !required && os.Getenv("LATCHKEY_INTEROP") != "1" {
		tb.Skip("builds and runs a Java program; set LATCHKEY_INTEROP=1, or use make interop")
	}
	for _, name := range []string{"javac", "java", "mvn"} {
		if _, err := exec.LookPath(name); err != nil && required {
			tb.Fatalf("LATCHKEY_REQUIRE has spring, but this needs a JDK 17 and Maven: %v", err)
		} else if err != nil {
			tb.Skipf("needs a JDK 17 and Maven: %v (LATCHKEY_REQUIRE=spring makes this a failure)", err)
		}
	}
	if err := build(); err != nil {
		tb.Fatal(err)
	}
	p := &peer{cmd: exec.Command("java", "-XX:+UseSerialGC", "-Xmx256m", "-Dfile.encoding=UTF-8", "-Duser.language=en",
		"-cp", "java/target/classes"+string(filepath.ListSeparator)+"java/target/lib/*", "latchkey.Peer")}
	p.cmd.Stderr = os.Stderr
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		tb.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	p.stdout = bufio.NewReaderSize(stdout, 1<<20)
	tb.Cleanup(func() {
		_ = p.stdin.Close()
		_ = p.cmd.Wait()
	})
	return p
}

// ask returns an answer for each question.
func (p *peer) ask(questions []question) (answers []answer, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	written := make(chan error, 1)
	go func() {
		w := bufio.NewWriter(p.stdin)
		enc := json.NewEncoder(w)
		for _, q := range questions {
			if err := enc.Encode(q); err != nil {
				written <- err
				return
			}
		}
		written <- w.Flush()
	}()
	for range questions {
		line, err := p.stdout.ReadBytes('\n')
		if err != nil {
			return nil, fmt.Errorf("the Java process has ended: %w", err)
		}
		var a answer
		if err := json.Unmarshal(line, &a); err != nil {
			return nil, fmt.Errorf("%s: %w", line, err)
		}
		answers = append(answers, a)
	}
	return answers, <-written
}

// build lets Maven build the program, unless its sources are those that it was last built from.
func build() error {
	sources, err := fingerprint()
	if err != nil {
		return err
	}
	const stamp = "java/target/built-from"
	if last, err := os.ReadFile(stamp); err == nil && bytes.Equal(last, sources) {
		return nil
	}
	repository, err := filepath.Abs("java/target/repository")
	if err != nil {
		return err
	}
	run := func(args ...string) ([]byte, error) {
		cmd := exec.Command("mvn", append(args, "-q", "-B", "-Dmaven.repo.local="+repository, "package")...)
		cmd.Dir = "java"
		return cmd.CombinedOutput()
	}
	if _, err := run("-o"); err != nil { // from what is already here; if that is not enough, fetch the rest
		if out, err := run(); err != nil {
			return fmt.Errorf("mvn package: %w\n%s", err, out)
		}
	}
	return os.WriteFile(stamp, sources, 0o644)
}

// fingerprint is a digest of all that the program is built from.
func fingerprint() ([]byte, error) {
	h := sha256.New()
	err := filepath.WalkDir("java", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case path == filepath.Join("java", "target"):
			return fs.SkipDir
		case d.IsDir():
			return nil
		}
		text, err := os.ReadFile(path)
		fmt.Fprintf(h, "%s %d\n%s", path, len(text), text)
		return err
	})
	return []byte(hex.EncodeToString(h.Sum(nil))), err
}
