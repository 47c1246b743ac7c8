package play

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
)

// point is a moment of an operation in which a process can be held.
type point struct {
	op       string
	after    bool     // Redis has answered one of the commands; otherwise one is about to be written to the network
	commands []string // any, if there are none
	told     string   // how the story tells it
}

var (
	keyMade      = point{op: opLock, after: true, commands: []string{"setnx", "set"}, told: "has a key in Redis, and nothing more"}
	beforeDelete = point{op: opUnlock, commands: []string{"del", "evalsha"}, told: "is about to delete the key"}
	beforeWrite  = point{op: opWrite, told: "has checked all, and is about to write"}
)

// String is the text of a point for a process.
func (p point) String() string {
	return fmt.Sprint(p.op, " ", p.after, " ", strings.Join(p.commands, " "))
}

// parsePoint reads what String has made.
func parsePoint(text string) (p point, err error) {
	words := strings.Fields(text)
	if len(words) < 2 {
		return p, fmt.Errorf("no point: %q", text)
	}
	p.op, p.commands = words[0], words[2:]
	p.after, err = strconv.ParseBool(words[1])
	return p, err
}

// in reports whether a request has one of the point's commands.
func (p point) in(request []byte) bool {
	return len(p.commands) == 0 || slices.ContainsFunc(p.commands, func(c string) bool {
		return bytes.Contains(request, []byte("\r\n"+c+"\r\n"))
	})
}

// gate holds the traffic of a client at one point, once.
type gate struct {
	reached func()        // is called at the point
	pass    chan struct{} // receives when the traffic may go on

	mu sync.Mutex
	at *point // nil if the gate is open
}

// shut makes the gate hold the traffic at p.
func (g *gate) shut(p point) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.at = &p
}

// stops reports whether the gate is shut at this request, and opens it for all later ones.
func (g *gate) stops(request []byte, after bool) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.at == nil || g.at.after != after || !g.at.in(request) {
		return false
	}
	g.at = nil
	return true
}

// client returns a client whose traffic goes through the gate. Its timeouts are longer than the stage holds anybody.
func (g *gate) client(addr string) *redis.Client {
	return redis.NewClient(&redis.Options{Addr: addr, ReadTimeout: long, WriteTimeout: long,
		Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := (&net.Dialer{}).DialContext(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			return &gatedConn{Conn: conn, gate: g}, nil
		}})
}

// gatedConn is a connection of such a client. It has one request at a time.
type gatedConn struct {
	net.Conn
	gate *gate
	stop bool // at the answer to the last request
}

func (c *gatedConn) Write(b []byte) (int, error) {
	if c.gate.stops(b, false) {
		c.gate.hold()
	}
	c.stop = c.gate.stops(b, true)
	return c.Conn.Write(b)
}

func (c *gatedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.stop {
		c.stop = false
		c.gate.hold()
	}
	return n, err
}

func (g *gate) hold() {
	g.reached()
	<-g.pass
}
