package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"strconv"
	"strings"
	"sync"
)

// maxBulk bounds what a client may send as one argument.
const maxBulk = 64 << 20

// proxy stands between clients and Redis and counts the commands that the clients send: an EVALSHA is one, whatever the
// script does, and each command of a pipeline is one.
type proxy struct {
	target   string
	listener net.Listener
	wg       sync.WaitGroup

	mu       sync.Mutex
	counts   map[string]int64
	record   bool
	commands [][]string
	conns    map[net.Conn]bool // nil once the proxy is closed
}

// listenAndCount returns a proxy before the server at target, on a free port.
func listenAndCount(target string) (*proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &proxy{target: target, listener: l, counts: map[string]int64{}, conns: map[net.Conn]bool{}}
	p.wg.Go(p.accept)
	return p, nil
}

// Addr is where clients connect.
func (p *proxy) Addr() string { return p.listener.Addr().String() }

// Reset forgets what was counted.
func (p *proxy) Reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.counts)
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

// Close ends all connections and waits for their goroutines.
func (p *proxy) Close() error {
	err := p.listener.Close()
	p.mu.Lock()
	for c := range p.conns {
		_ = c.Close()
	}
	p.conns = nil
	p.mu.Unlock()
	p.wg.Wait()
	return err
}

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.target)
		if err != nil {
			_ = client.Close()
			continue
		}
		if !p.keep(client, server) {
			return
		}
		p.wg.Go(func() { p.pipe(client, server, p.requests) })
		p.wg.Go(func() { p.pipe(client, server, answers) })
	}
}

// keep notes connections that Close has to end. It ends them at once if the proxy is closed.
func (p *proxy) keep(conns ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		if p.conns == nil {
			_ = c.Close()
			continue
		}
		p.conns[c] = true
	}
	return p.conns != nil
}

// pipe passes on one direction of a connection until either side ends it.
func (p *proxy) pipe(client, server net.Conn, pass func(client, server net.Conn) error) {
	_ = pass(client, server) // the ends of connections are all alike here
	_, _ = client.Close(), server.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, client)
	delete(p.conns, server)
}

func answers(client, server net.Conn) error {
	_, err := io.Copy(client, server)
	return err
}

func (p *proxy) requests(client, server net.Conn) error {
	r, w := bufio.NewReader(client), bufio.NewWriter(server)
	for {
		command, err := readCommand(r)
		if err != nil {
			return err
		}
		p.note(command)
		writeCommand(w, command)
		if r.Buffered() == 0 {
			if err := w.Flush(); err != nil {
				return err
			}
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

var errProtocol = errors.New("not a command in RESP")

// readCommand reads an array of bulk strings, which is what clients send:
//
//	command = "*" count CRLF { "$" length CRLF bytes CRLF }
func readCommand(r *bufio.Reader) ([]string, error) {
	n, err := readNumber(r, '*')
	if err != nil {
		return nil, err
	}
	if n < 1 {
		return nil, fmt.Errorf("%w: %d arguments", errProtocol, n)
	}
	var command []string
	for range n {
		length, err := readNumber(r, '$')
		if err != nil {
			return nil, err
		}
		if length < 0 || length > maxBulk {
			return nil, fmt.Errorf("%w: an argument of %d bytes", errProtocol, length)
		}
		text := make([]byte, length+2)
		if _, err := io.ReadFull(r, text); err != nil {
			return nil, err
		}
		command = append(command, string(text[:length]))
	}
	return command, nil
}

func readNumber(r *bufio.Reader, kind byte) (int, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return 0, err
	}
	if line[0] != kind {
		return 0, fmt.Errorf("%w: %q", errProtocol, line)
	}
	return strconv.Atoi(strings.TrimSpace(line[1:]))
}

// writeCommand is the reverse of readCommand. The writer keeps the error.
func writeCommand(w *bufio.Writer, command []string) {
	fmt.Fprintf(w, "*%d\r\n", len(command))
	for _, text := range command {
		fmt.Fprintf(w, "$%d\r\n%s\r\n", len(text), text)
	}
}
