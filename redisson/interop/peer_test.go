package interop

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// peer is a Java process that obeys commands.
type peer struct {
	version string
	cmd     *exec.Cmd
	stdin   io.WriteCloser
	clients atomic.Int64

	mu      sync.Mutex
	lastID  int64
	answers map[int64]chan<- answer // nil when the process has ended
}

// command is one line to the peer; see the comment on Peer.java.
type command struct {
	ID     int64          `json:"id"`
	Client string         `json:"client"`
	Thread string         `json:"thread,omitempty"`
	Config map[string]any `json:"config,omitempty"`
	Prefix string         `json:"prefix,omitempty"` // of all names, beside a Config
	Setnx  string         `json:"setnx,omitempty"`  // the address of the server, for a Setnx
	Call   []step         `json:"call,omitempty"`
}

// step is a method's name and its arguments. An argument of type []step is a call of the same client as well, and what of
// makes is one of any client.
type step []any

// of is a call as an argument of another one, which may be of another client.
func of(c *javaClient, chain ...step) []any {
	argument := []any{c.name}
	for _, s := range chain {
		argument = append(argument, s)
	}
	return argument
}

// answer is one line from the peer.
type answer struct {
	ID    int64
	Value any
	Class string // of what was thrown; empty if nothing was
	Error string
	Nanos int64
	At    int64 // microseconds since 1970
}

// javaError is what a call threw.
type javaError struct{ class, message string }

func (e *javaError) Error() string { return e.class + ": " + e.message }

func (a answer) err() error {
	if a.Class == "" {
		return nil
	}
	return &javaError{a.Class, a.Error}
}

// result is the answer without its value.
func (a answer) result() result {
	at := time.UnixMicro(a.At)
	return result{err: a.err(), start: at.Add(-time.Duration(a.Nanos)), end: at}
}

var errPeerGone = errors.New("the Java process has ended")

// startPeer starts a Java process with a version of Redisson. What Redisson logs is in peer.log beside its classes.
func startPeer(version string) (*peer, error) {
	classPath, err := build(version)
	if err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(targetDir, version, "peer.log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	p := &peer{version: version, answers: map[int64]chan<- answer{}}
	p.cmd = exec.Command("java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx256m", "-cp", classPath, "latchkey.Peer")
	p.cmd.Stderr = log
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go p.listen(stdout)
	return p, nil
}

func (p *peer) listen(stdout io.Reader) {
	lines := bufio.NewScanner(stdout)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var a answer
		if err := json.Unmarshal(lines.Bytes(), &a); err != nil {
			continue // not ours; Redisson has its own ideas of what goes to standard output
		}
		p.mu.Lock()
		ch := p.answers[a.ID]
		delete(p.answers, a.ID)
		p.mu.Unlock()
		if ch != nil {
			ch <- a
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, ch := range p.answers {
		ch <- answer{Class: "-", Error: errPeerGone.Error(), At: time.Now().UnixMicro()}
	}
	p.answers = nil
}

// send gives a command to the process. The answer arrives in the channel, which has room for it.
func (p *peer) send(c command) <-chan answer {
	ch := make(chan answer, 1)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.answers == nil {
		ch <- answer{Class: "-", Error: errPeerGone.Error(), At: time.Now().UnixMicro()}
		return ch
	}
	p.lastID++
	c.ID = p.lastID
	p.answers[c.ID] = ch
	line, err := json.Marshal(c)
	if err != nil {
		panic(err) // a command is made of plain values
	}
	_, _ = p.stdin.Write(append(line, '\n')) // listen notices the end of the process
	return ch
}

// kill ends the process as SIGKILL does.
func (p *peer) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

var peers sync.Map // version → func() (*peer, error)

// sharedPeer returns the process for a version that all scenarios share: starting one takes a second.
func sharedPeer(tb testing.TB, version string) *peer {
	tb.Helper()
	once, _ := peers.LoadOrStore(version, sync.OnceValues(func() (*peer, error) { return startPeer(version) }))
	p, err := once.(func() (*peer, error))()
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

// ownPeer returns a process that the scenario may kill.
func ownPeer(tb testing.TB, version string) *peer {
	tb.Helper()
	p, err := startPeer(version)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(p.kill)
	return p
}

// killPeers ends the shared processes.
func killPeers() {
	peers.Range(func(_, once any) bool {
		if p, err := once.(func() (*peer, error))(); err == nil {
			p.kill()
		}
		return true
	})
}

// javaClient is a RedissonClient in a peer.
type javaClient struct {
	peer *peer
	name string
}

const singleServer = "singleServerConfig"

// config says how to reach a single server; the settings are added to it.
func config(addr string, settings map[string]any) map[string]any {
	return withDefaults(settings, singleServer, map[string]any{"address": "redis://" + addr, "connectionMinimumIdleSize": 2})
}

// clusterConfig says how to reach a cluster; mode is Redisson's shardedSubscriptionMode, or empty.
func clusterConfig(addrs []string, mode string, settings map[string]any) map[string]any {
	urls := make([]string, len(addrs))
	for i, addr := range addrs {
		urls[i] = "redis://" + addr
	}
	return withDefaults(settings, "clusterServersConfig", map[string]any{
		"nodeAddresses":                   urls,
		"scanInterval":                    1000,
		"masterConnectionMinimumIdleSize": 2,
		"slaveConnectionMinimumIdleSize":  1,
		"shardedSubscriptionMode":         cmp.Or(mode, "AUTO"),
	})
}

func withDefaults(settings map[string]any, kind string, servers map[string]any) map[string]any {
	all := map[string]any{"threads": 4, "nettyThreads": 4}
	maps.Copy(all, settings)
	if own, ok := all[kind].(map[string]any); ok {
		maps.Copy(servers, own)
	}
	all[kind] = servers
	return all
}

// newJava makes a client in the peer, which is shut down when the test ends. Its keys begin with the prefix.
func newJava(tb testing.TB, p *peer, config map[string]any, prefix string) *javaClient {
	tb.Helper()
	c := &javaClient{p, fmt.Sprintf("c%d", p.clients.Add(1))}
	if a := <-p.send(command{Client: c.name, Config: config, Prefix: prefix}); a.err() != nil {
		tb.Fatalf("a client of Redisson %s: %v", p.version, a.err())
	}
	tb.Cleanup(func() { <-p.send(command{Client: c.name}) })
	return c
}

// call runs a chain of calls in the client's thread of that name, or any if it is empty, and waits for the answer.
func (c *javaClient) call(thread string, chain ...step) answer {
	if thread != "" {
		thread = c.name + "/" + thread
	}
	return <-c.peer.send(command{Client: c.name, Thread: thread, Call: chain})
}
