package sim

import (
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/alicebob/miniredis/v2"
)

// Faults are the faults of a network. The zero value is a network with nothing but latency.
type Faults struct {
	// LoseRequest, LoseAnswer and CutSubscription are the parts of all messages that are lost on their way, from 0 to 1.
	// The connection breaks with them: in half of the cases, a request or an answer is just never answered.
	LoseRequest, LoseAnswer, CutSubscription float64
	// Late is the part of the lost requests that arrives nevertheless, on its own, within LateMost.
	Late     float64
	LateMost time.Duration
	// Tail is the part of all messages that takes from 100 to 400 ms longer.
	Tail float64
	// Drift is by which part the server's clock is faster or slower than the clients' at most.
	Drift float64
	// Flush, Silence and Partition are how often, on the average, the server forgets its scripts, hears nobody for a while,
	// and can't be reached by one of the clients; 0 is never.
	Flush, Silence, Partition time.Duration
	// Demote and Away are how often all connections lead to a replica from then on, where new ones lead to the master, and how often too few
	// replicas are there for a write, for AwayMost at most.
	Demote, Away, AwayMost time.Duration
	// Back is how often there is a failover to a replica that is up to BackMost behind: Past remembers keys and returns what brings them back,
	// and all connections are cut.
	Back, BackMost time.Duration
	Past           func(*miniredis.Miniredis) (back func())
	// WindowMost is how long a silence or a partition lasts at most.
	WindowMost time.Duration
	// Clients is how many clients there are, from 0 on, and Span how long there are flushes, silences and partitions.
	Clients int
	Span    time.Duration
}

// outcome is the fate of one message.
type outcome struct {
	kind     kind
	up, down time.Duration // how long the request and the answer take
	late     time.Duration // after which a late request arrives
	silent   bool          // nobody notices that the connection is broken
	tail     bool
}

type kind int

const (
	delivered kind = iota
	requestLost
	requestLate
	answerLost
)

// String returns the name under which an outcome is counted.
func (k kind) String() string {
	return [...]string{"message delivered", "request lost", "request late", "answer lost"}[k]
}

// String is the text in a trace.
func (o *outcome) String() string {
	if o.kind == delivered {
		return ""
	}
	s := o.kind.String()
	if o.silent {
		s += " silently"
	}
	if o.kind == requestLate {
		s += fmt.Sprintf(" by %v", o.late)
	}
	return s
}

// draw decides the outcome of a message. It always draws as many numbers, so that one rate does not shift another.
func (n *Network) draw(m *message) *outcome {
	who := fmt.Sprintf("%d %s", m.client, m.text)
	n.said[who]++
	r := rand.New(rand.NewPCG(hash(n.opts.Seed, who), uint64(n.said[who])))
	o := &outcome{}
	o.up, o.down = latency(r), latency(r)
	o.addTail(r, n.faults.Tail)
	chance, late, silent, by := r.Float64(), r.Float64(), r.Float64(), below(r, n.faults.LateMost)
	f := n.faults
	switch {
	case m.conn.subscriber && chance < f.CutSubscription:
		o.kind = answerLost
	case m.conn.subscriber, chance >= f.LoseRequest+f.LoseAnswer:
	case chance >= f.LoseRequest:
		o.kind, o.silent = answerLost, silent < 0.5
	case late < f.Late:
		o.kind, o.late, o.silent = requestLate, o.up+by, silent < 0.5
	default:
		o.kind, o.silent = requestLost, silent < 0.5
	}
	return o
}

// latency is how long a hop takes, to the nanosecond.
func latency(r *rand.Rand) time.Duration { return 50*time.Microsecond + below(r, 900*time.Microsecond) }

// addTail makes one of the hops slow, with the given chance.
func (o *outcome) addTail(r *rand.Rand, chance float64) {
	draw, extra := r.Float64(), 100*time.Millisecond+below(r, 300*time.Millisecond)
	o.tail = draw < chance
	switch {
	case draw < chance/2:
		o.up += extra
	case o.tail:
		o.down += extra
	}
}

// below draws a time from 0 to d.
func below(r *rand.Rand, d time.Duration) time.Duration {
	return time.Duration(r.Int64N(max(int64(d), 1)))
}

// window is a time in which the server does not hear one of the clients, or one of the below.
type window struct {
	client   int
	from, to time.Duration
}

const (
	everybody = -1 - iota // is not heard
	replicas              // are too few for a write
)

func (w window) open(now time.Duration) bool { return w.from <= now && now < w.to }

// plan draws the faults that strike at a time, and not a message.
func (n *Network) plan() {
	r := rand.New(rand.NewPCG(hash(n.opts.Seed, "plan"), 0))
	f := n.faults
	n.server.drift = (2*r.Float64() - 1) * f.Drift
	each := func(mean time.Duration, strike func(at time.Duration)) {
		for at := below(r, 2*mean); mean > 0 && at < f.Span; at += below(r, 2*mean) {
			strike(at)
		}
	}
	each(f.Flush, func(at time.Duration) { n.happenAt(at, &outcome{}, n.flush) })
	each(f.Demote, func(at time.Duration) { n.happenAt(at, &outcome{}, n.demote) })
	each(f.Back, func(at time.Duration) {
		behind := below(r, f.BackMost)
		n.happenAt(at, &outcome{}, func() { n.after(behind, &outcome{}, n.failOver(f.Past(n.Server()))) })
	})
	open := func(client int, at, most time.Duration) {
		n.windows = append(n.windows, window{client, at, at + below(r, most)})
	}
	each(f.Away, func(at time.Duration) { open(replicas, at, f.AwayMost) })
	each(f.Silence, func(at time.Duration) { open(everybody, at, f.WindowMost) })
	each(f.Partition, func(at time.Duration) { open(r.IntN(max(f.Clients, 1)), at, f.WindowMost) })
}

func (n *Network) flush() {
	if n.faults.Flush == 0 { // healed
		return
	}
	n.Reach("script flush")
	n.note(-1, "runs", "script flush", "")
	n.server.run(newPeer(), []string{"script", "flush"})
}

func (n *Network) demote() {
	for _, c := range n.conns {
		c.demoted = n.faults.Demote > 0 // or healed
	}
}

// failOver returns what takes a failover to a replica that has the given past.
func (n *Network) failOver(back func()) func() {
	return func() {
		if n.faults.Back == 0 { // healed
			return
		}
		n.Reach("keys that are back")
		n.note(-1, "runs", "failover", "")
		n.back.Store(int64(n.Since()))
		back()
		for _, c := range slices.Clone(n.conns) {
			c.cut(io.EOF)
		}
	}
}

// Back is when keys have last travelled back in time; 0: never.
func (n *Network) Back() time.Duration { return time.Duration(n.back.Load()) }

// instead returns what a demoted master answers to a command in place of the server, or the server to a script for want of replicas; or "".
func (n *Network) instead(m *message, p *peer, args []string) (answer string) {
	now := n.Since()
	switch {
	case m.conn.demoted:
		n.Reach("asked a demoted master")
		if answer = n.replica.run(p, args); strings.Contains(answer, readOnly) { // a script says where it met that; with Redis it does not
			answer = "-" + readOnly + "\r\n"
		}
	case strings.HasPrefix(args[0], "eval") && slices.ContainsFunc(n.windows, func(w window) bool { return w.client == replicas && w.open(now) }):
		n.Reach("refused by a server that is not ready")
		answer = "-NOREPLICAS Not enough good replicas to write.\r\n"
	}
	return answer
}

// held returns how long to wait before looking again whether the server hears a client; 0 is that it does.
func (n *Network) held(client int) time.Duration {
	return n.unreachable("request held back", func(w window) bool { return w.client == client || w.client == everybody })
}

// partitioned is held for what a client is to hear.
func (n *Network) partitioned(client int) time.Duration {
	return n.unreachable("answer held back", func(w window) bool { return w.client == client })
}

// lookAgain is how long a message that is held back waits at a time, as the network may be healed meanwhile.
const lookAgain = 250 * time.Millisecond

func (n *Network) unreachable(what string, concerns func(window) bool) (longest time.Duration) {
	now := n.Since()
	for _, w := range n.windows {
		if w.open(now) && concerns(w) {
			longest = max(longest, min(w.to-now, lookAgain))
		}
	}
	if longest > 0 {
		n.Reach(what)
	}
	return longest
}

// hash mixes a number and a text.
func hash(seed uint64, text string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(text))
	x := h.Sum64() ^ seed*0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
