package sim

import (
	"bufio"
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/alicebob/miniredis/v2"
	redis "github.com/alicebob/miniredis/v2/server"
	"github.com/latchkey-go/latchkey/internal/redistest"
)

// server is miniredis without connections: commands are run one at a time, at once, and what they publish is collected.
type server struct {
	*miniredis.Miniredis
	start     time.Time
	drift     float64
	published []publication
	listeners func(channel string) int
}

type publication struct{ channel, payload string }

func newServer(seed int) (*server, error) {
	s := &server{Miniredis: miniredis.NewMiniRedis(), start: time.Now()}
	s.Seed(seed)
	s.tick()
	s.ClockTTL(true)
	c, err := s.Dial() // without a connection there is no server
	if err != nil {
		return nil, err
	}
	_ = c.Close()
	s.Server().SetPreHook(s.publish)
	return s, nil
}

// now is the time by the server's clock.
func (s *server) now() time.Time {
	passed := time.Since(s.start)
	return s.start.Add(passed + time.Duration(s.drift*float64(passed)))
}

// tick lets keys end whose time is over.
func (s *server) tick() { s.SetTime(s.now()) }

// publish takes the place of a command of miniredis, which serves connections of its own.
func (s *server) publish(p *redis.Peer, cmd string, args ...string) bool {
	if cmd != "PUBLISH" || len(args) != 2 {
		return false
	}
	s.published = append(s.published, publication{args[0], args[1]})
	n := 0
	if s.listeners != nil {
		n = s.listeners(args[0])
	}
	p.WriteInt(n)
	return true
}

// run runs a command for a connection and returns the answer.
func (s *server) run(p *peer, args []string) string {
	s.tick()
	s.Server().Dispatch(p.Peer, args)
	p.Flush()
	answer := p.answer.String()
	p.answer.Reset()
	return answer
}

// peer is the server's end of a connection.
type peer struct {
	*redis.Peer
	answer bytes.Buffer
}

func newPeer() *peer {
	p := &peer{}
	p.Peer = redis.NewPeer(bufio.NewWriter(&p.answer))
	return p
}

// greeting reports whether a command belongs to the handshake of a connection.
func greeting(command string) bool {
	return slices.Contains([]string{"hello", "client", "auth", "select", "readonly"}, strings.ToLower(command))
}

// parse returns the first command in b and its size, or nil if it is not complete.
func parse(b []byte) (args []string, size int) {
	raw, args, _ := redistest.ReadRequest(bufio.NewReaderSize(bytes.NewReader(b), 64))
	return args, len(raw)
}

// push encodes what a subscriber is sent.
func push(kind, channel string, last any) string {
	end := fmt.Sprintf(":%d\r\n", last)
	if text, ok := last.(string); ok {
		end = bulk(text)
	}
	return "*3\r\n" + bulk(kind) + bulk(channel) + end
}

func bulk(s string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(s), s) }

// readOnly is a replica's answer to a write.
const readOnly = "READONLY You can't write against a read only replica."

// refuseWrites makes a server a replica. It is empty: a demoted master whose keys have ended, as those of the new one go on.
func refuseWrites(p *redis.Peer, cmd string, _ ...string) bool {
	switch cmd {
	case "SET", "DEL", "GETEX", "INCR", "INCRBY", "DECR", "DECRBY", "PEXPIRE", "PERSIST", "HSET", "HSETNX", "HDEL", "RPUSH", "LPOP", "LREM", "ZADD",
		"ZINCRBY", "ZREM", "ZREMRANGEBYSCORE", "ZREMRANGEBYRANK":
		p.WriteError(readOnly)
		return true
	}
	return false
}
