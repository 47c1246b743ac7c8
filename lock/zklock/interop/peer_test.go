package interop

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// peer is a Java process with Curator that obeys commands; see Peer.java.
type peer struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser

	mu      sync.Mutex
	last    int
	answers map[string]chan<- answer // nil when the process has ended
}

type answer struct {
	value string
	err   error
}

var errPeerGone = errors.New("the Java process has ended")

// startPeer starts a Java process that ends with the test. What Curator logs is in target/peer.log.
func startPeer(tb testing.TB, servers string, session time.Duration) *peer {
	tb.Helper()
	classPath, err := build()
	if err != nil {
		tb.Fatal(err)
	}
	p := &peer{answers: make(map[string]chan<- answer)}
	p.cmd = exec.Command("java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx128m", "-cp", classPath, "latchkey.Peer",
		servers, strconv.FormatInt(session.Milliseconds(), 10))
	log, err := os.Create(filepath.Join(targetDir, "peer.log"))
	if err != nil {
		tb.Fatal(err)
	}
	defer log.Close()
	p.cmd.Stderr = log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		tb.Fatal(err)
	}
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	go p.listen(stdout)
	tb.Cleanup(p.kill)
	return p
}

func (p *peer) listen(stdout io.Reader) {
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		words := strings.SplitN(lines.Text(), "\t", 3)
		if len(words) != 3 {
			continue // not ours
		}
		a := answer{value: words[2]}
		if words[1] != "ok" {
			a = answer{err: errors.New(words[2])}
		}
		p.mu.Lock()
		ch := p.answers[words[0]]
		delete(p.answers, words[0])
		p.mu.Unlock()
		if ch != nil {
			ch <- a
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, ch := range p.answers {
		ch <- answer{err: errPeerGone}
	}
	p.answers = nil
}

// send has the process do something to a lock in a thread. The answer arrives in the channel, which has room for it.
func (p *peer) send(thread, verb, kind, path string, more ...any) <-chan answer {
	ch := make(chan answer, 1)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.answers == nil {
		ch <- answer{err: errPeerGone}
		return ch
	}
	p.last++
	var line strings.Builder
	fmt.Fprint(&line, p.last, "\t", thread, "\t", verb, "\t", kind, "\t", path)
	for _, word := range more {
		fmt.Fprint(&line, "\t", word)
	}
	p.answers[strconv.Itoa(p.last)] = ch
	_, _ = io.WriteString(p.stdin, line.String()+"\n") // listen notices the end of the process
	return ch
}

// call is send, and waits for the answer, which has to be want.
func (p *peer) call(tb testing.TB, want, thread, verb, kind, path string, more ...any) {
	tb.Helper()
	select {
	case a := <-p.send(thread, verb, kind, path, more...):
		if a.err != nil || a.value != want {
			tb.Fatalf("Curator: %s %s = %q, %v, want %q", verb, kind, a.value, a.err, want)
		}
	case <-time.After(30 * time.Second):
		tb.Fatalf("Curator: %s %s does not return", verb, kind)
	}
}

// kill ends the process as SIGKILL does.
func (p *peer) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}
