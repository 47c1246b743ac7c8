package redistest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
)

// Relay accepts connections of clients and makes one to a server for each. Its owner decides what passes between them.
type Relay struct {
	// Addr is where clients connect.
	Addr string

	listener net.Listener
	open     func(client, server net.Conn) (up, down func())
	wg       sync.WaitGroup

	mu       sync.Mutex
	target   string
	conns    map[net.Conn]bool // nil once the relay is closed
	accepted int
}

// Listen returns a relay in front of the server at target, on a free port. For each pair of connections, open returns what carries
// the requests and what carries the replies. Both run in goroutines of their own, and both connections are closed when one returns.
func Listen(target string, open func(client, server net.Conn) (up, down func())) (*Relay, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &Relay{Addr: l.Addr().String(), listener: l, open: open, target: target, conns: map[net.Conn]bool{}}
	r.wg.Go(r.accept)
	return r, nil
}

// Target is the address of the server.
func (r *Relay) Target() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.target
}

// Move has new connections go to another server, and ends those that there are.
func (r *Relay) Move(target string) {
	r.Point(target)
	r.Drop()
}

// Point is Move, but leaves the connections alone that there are.
func (r *Relay) Point(target string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.target = target
}

// Connections returns how many connections clients have open now, and how many they have made so far.
func (r *Relay) Connections() (open, made int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.conns) / 2, r.accepted
}

// Drop closes all connections that are open now. Data on their way are lost.
func (r *Relay) Drop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for c := range r.conns {
		_ = c.Close()
	}
}

// Close ends the relay and waits for what carries.
func (r *Relay) Close() {
	_ = r.listener.Close()
	r.Drop()
	r.mu.Lock()
	r.conns = nil
	r.mu.Unlock()
	r.wg.Wait()
}

func (r *Relay) accept() {
	for {
		client, err := r.listener.Accept()
		if err != nil {
			return
		}
		r.wg.Go(func() { r.serve(client) })
	}
}

// serve carries what passes on one connection. Others do not wait until the server has taken it.
func (r *Relay) serve(client net.Conn) {
	server, err := net.Dial("tcp", r.Target())
	if err != nil {
		_ = client.Close()
		return
	}
	if !r.keep(client, server) {
		return
	}
	up, down := r.open(client, server)
	for _, carry := range []func(){up, down} {
		r.wg.Go(func() {
			defer r.end(client, server)
			carry()
		})
	}
}

// keep notes connections that Drop has to end. It ends them at once if the relay is closed.
func (r *Relay) keep(client, server net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.conns == nil {
		_, _ = client.Close(), server.Close()
		return false
	}
	r.conns[client], r.conns[server] = true, true
	r.accepted++
	return true
}

func (r *Relay) end(client, server net.Conn) {
	_, _ = client.Close(), server.Close()
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.conns, client)
	delete(r.conns, server)
}

// maxBulk bounds what a client may send as one argument.
const maxBulk = 64 << 20

// ErrProtocol says that bytes are no request.
var ErrProtocol = errors.New("not a request in RESP")

// ReadRequest reads an array of bulk strings, which is what clients send. It returns its bytes, and the words in them:
//
//	request = "*" count CRLF { "$" length CRLF bytes CRLF }
func ReadRequest(r *bufio.Reader) (raw []byte, words []string, err error) {
	raw, n, err := readNumber(r, nil, '*')
	if err == nil && n < 1 {
		err = fmt.Errorf("%w: %d words", ErrProtocol, n)
	}
	for i := 0; err == nil && i < n; i++ {
		var length int
		if raw, length, err = readNumber(r, raw, '$'); err != nil {
			break
		}
		if length < 0 || length > maxBulk {
			return nil, nil, fmt.Errorf("%w: a word of %d bytes", ErrProtocol, length)
		}
		start := len(raw)
		raw = append(raw, make([]byte, length+2)...)
		_, err = io.ReadFull(r, raw[start:])
		words = append(words, string(raw[start:start+length]))
	}
	if err != nil {
		return nil, nil, err
	}
	return raw, words, nil
}

func readNumber(r *bufio.Reader, before []byte, kind byte) (after []byte, n int, err error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return nil, 0, err
	}
	if line[0] != kind {
		return nil, 0, fmt.Errorf("%w: %q", ErrProtocol, line)
	}
	n, err = strconv.Atoi(strings.TrimSpace(line[1:]))
	return append(before, line...), n, err
}
