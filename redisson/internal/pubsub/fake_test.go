package pubsub

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// fakeServer is as much of a Redis as a subscriber needs, over net.Pipe, so that tests run in a bubble with its time.
type fakeServer struct {
	start       time.Time
	shardNumSub string // the answer to PUBSUB SHARDNUMSUB

	mu      sync.Mutex
	trace   []string        // what happened after the handshakes, and when
	dials   []time.Duration // when
	refuses bool            // to make connections
	silent  bool            // nothing is answered
	deaf    bool            // nothing is even read
	lost    map[string]bool // the channels of which this is not the master
	conns   map[*fakeConn]bool
}

// fakeConn is the server's end of a connection.
type fakeConn struct {
	server   *fakeServer
	pipe     net.Conn
	replies  chan string
	channels map[string]bool // guarded by the server's mutex
}

func newFakeServer() *fakeServer {
	return &fakeServer{start: time.Now(), conns: map[*fakeConn]bool{}, lost: map[string]bool{}}
}

// subscriber returns a Subscriber of the server, closed when the test ends. The changes are applied to its client's options.
func (f *fakeServer) subscriber(t *testing.T, changes ...func(*redis.Options)) *Subscriber {
	t.Helper()
	options := &redis.Options{Addr: "127.0.0.1:6379", Dialer: f.dial}
	for _, change := range changes {
		change(options)
	}
	rdb := redis.NewClient(options)
	s := NewSubscriber(NewTopology(rdb, Auto))
	t.Cleanup(func() {
		s.Close()
		_ = rdb.Close()
	})
	return s
}

func (f *fakeServer) dial(context.Context, string, string) (net.Conn, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.dials = append(f.dials, time.Since(f.start))
	if f.refuses {
		return nil, &net.OpError{Op: "dial", Err: errors.New("refused")}
	}
	client, pipe := net.Pipe()
	c := &fakeConn{server: f, pipe: pipe, replies: make(chan string, 1000), channels: map[string]bool{}}
	f.conns[c] = true
	if !f.deaf {
		go c.read()
		go c.write()
	}
	return client, nil
}

// note adds a line to the trace. The mutex is held.
func (f *fakeServer) note(what string) {
	f.trace = append(f.trace, fmt.Sprint(time.Since(f.start), " ", what))
}

// takeTrace returns what happened since it was last called.
func (f *fakeServer) takeTrace() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	trace := f.trace
	f.trace = nil
	return trace
}

func (f *fakeServer) set(flag *bool, to bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	*flag = to
}

// dialled returns when connections were asked for.
func (f *fakeServer) dialled() []time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.dials)
}

// size counts the channels and connections that a Subscriber knows.
func (s *Subscriber) size() (channels, connections int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.channels), len(s.connections)
}

// connections counts those that are open.
func (f *fakeServer) connections() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.conns)
}

// subscribed counts the channels that are subscribed.
func (f *fakeServer) subscribed() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for c := range f.conns {
		for _, subscribed := range c.channels {
			if subscribed {
				n++
			}
		}
	}
	return n
}

// lose makes the server answer that it does not have the slot of the channel.
func (f *fakeServer) lose(channel string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lost[channel] = true
}

// publish sends a message to the subscribers of a channel.
func (f *fakeServer) publish(channel string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for c := range f.conns {
		if c.channels[channel] {
			c.replies <- array("message", channel, "0")
		}
	}
}

// reply sends something on all connections.
func (f *fakeServer) reply(r string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for c := range f.conns {
		c.replies <- r
	}
}

// drop closes all connections.
func (f *fakeServer) drop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for c := range f.conns {
		_ = c.pipe.Close()
	}
}

func (c *fakeConn) write() {
	for r := range c.replies {
		if _, err := io.WriteString(c.pipe, r); err != nil {
			return
		}
	}
}

func (c *fakeConn) read() {
	defer c.end()
	r := bufio.NewReader(c.pipe)
	for {
		command, err := readCommand(r)
		if err != nil {
			return
		}
		c.answer(command)
	}
}

func (c *fakeConn) end() {
	c.server.mu.Lock()
	defer c.server.mu.Unlock()
	_ = c.pipe.Close()
	close(c.replies)
	delete(c.server.conns, c)
	c.server.note("closed")
}

func (c *fakeConn) answer(command []string) {
	f := c.server
	f.mu.Lock()
	defer f.mu.Unlock()
	verb := strings.ToLower(command[0])
	if verb != "hello" && verb != "client" {
		f.note(strings.Join(command, " "))
	}
	if f.silent {
		return
	}
	switch verb {
	case "hello":
		c.replies <- "-ERR unknown command\r\n"
	case "subscribe", "ssubscribe", "unsubscribe", "sunsubscribe":
		for _, channel := range command[1:] {
			if verb == "ssubscribe" && f.lost[channel] {
				c.replies <- fmt.Sprintf("-MOVED %d 127.0.0.1:1\r\n", Slot(channel))
				continue
			}
			c.channels[channel] = !strings.Contains(verb, "un")
			c.replies <- array(verb, channel, 1)
		}
	case "pubsub":
		c.replies <- f.shardNumSub
	case "ping":
		c.replies <- array("pong", "")
	default:
		c.replies <- "+OK\r\n"
	}
}

func array(parts ...any) string {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(parts))
	for _, part := range parts {
		switch part := part.(type) {
		case int:
			fmt.Fprintf(&b, ":%d\r\n", part)
		case string:
			fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(part), part)
		}
	}
	return b.String()
}

func readCommand(r *bufio.Reader) ([]string, error) {
	n, err := readCount(r, '*')
	if err != nil {
		return nil, err
	}
	command := make([]string, n)
	for i := range command {
		size, err := readCount(r, '$')
		if err != nil {
			return nil, err
		}
		word := make([]byte, size+2)
		if _, err := io.ReadFull(r, word); err != nil {
			return nil, err
		}
		command[i] = string(word[:size])
	}
	return command, nil
}

func readCount(r *bufio.Reader, kind byte) (int, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return 0, err
	}
	if line[0] != kind {
		return 0, errors.New("not a command: " + line)
	}
	return strconv.Atoi(strings.TrimSpace(line[1:]))
}
