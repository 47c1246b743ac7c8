package main

import (
	"bufio"
	"io"
	"maps"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
)

// proxy stands between clients and Redis and counts the commands that the clients send: an EVALSHA is one, whatever the
// script does, and each command of a pipeline is one.
type proxy struct {
	*redistest.Relay

	mu       sync.Mutex
	counts   map[string]int64
	trips    int64
	delay    time.Duration // of each request
	record   bool
	commands [][]string
}

// listenAndCount returns a proxy before the server at target, on a free port.
func listenAndCount(target string) (p *proxy, err error) {
	p = &proxy{counts: map[string]int64{}}
	p.Relay, err = redistest.Listen(target, func(client, server net.Conn) (up, down func()) {
		return func() { p.requests(client, server) }, func() { _, _ = io.Copy(client, server) } // the ends of connections are all alike here
	})
	if err != nil {
		return nil, err
	}
	return p, nil
}

// Reset forgets what was counted.
func (p *proxy) Reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.counts)
	p.trips = 0
}

// Delay has each request wait on its way.
func (p *proxy) Delay(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = d
}

// Trips returns how often clients have sent something, of one command or more.
func (p *proxy) Trips() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.trips
}

// Counts returns how many commands of each name have come, in lower case.
func (p *proxy) Counts() map[string]int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.counts)
}

// Record keeps whole commands from now on, and forgets those that it has.
func (p *proxy) Record() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.record, p.commands = true, nil
}

// Recorded returns the commands that have come since Record.
func (p *proxy) Recorded() [][]string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.commands
}

func (p *proxy) requests(client, server net.Conn) {
	r, w := bufio.NewReader(client), bufio.NewWriter(server)
	for {
		request, command, err := redistest.ReadRequest(r)
		if err != nil {
			return
		}
		p.note(command)
		_, _ = w.Write(request) // the writer keeps the error
		if r.Buffered() > 0 {
			continue
		}
		p.mu.Lock()
		p.trips++
		delay := p.delay
		p.mu.Unlock()
		time.Sleep(delay)
		if w.Flush() != nil {
			return
		}
	}
}

func (p *proxy) note(command []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.counts[strings.ToLower(command[0])]++
	if p.record {
		p.commands = append(p.commands, command)
	}
}
