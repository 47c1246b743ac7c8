package sim

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"time"
)

// Faults says what goes wrong. The zero value is a network with nothing but latency.
type Faults struct {
	// LoseRequest, LoseAnswer and CutSubscription are the parts of all messages that are lost on their way, from 0 to 1.
	// The connection breaks: at once, or for half of the requests and answers without notice.
	LoseRequest, LoseAnswer, CutSubscription float64
	// Late is the part of the lost requests that arrives nevertheless, on its own, within LateMost.
	Late     float64
	LateMost time.Duration
	// Tail is the part of all messages that takes from 100 to 400 ms longer.
	Tail float64
	// Flush, Silence and Partition are how often, on the average, the server forgets its scripts, answers nobody for a
	// while, and can't be reached by one of the clients; 0 is never.
	Flush, Silence, Partition time.Duration
	// WindowMost is how long a silence or a partition lasts at most.
	WindowMost time.Duration
	// Drift is by which part the server's clock is faster or slower than the clients' at most.
	Drift float64
	// Clients is how many clients there are, from 0 on.
	Clients int
	// Span is how long the server's and the clients' faults are planned ahead.
	Span time.Duration
}

// fate is what becomes of one message.
type fate struct {
	kind     kind
	up, down time.Duration
	late     time.Duration
	silent   bool
	tail     bool
}

type kind int

const (
	delivered kind = iota
	requestLost
	requestLate
	answerLost
)

// String returns the name under which a fault is counted.
func (k kind) String() string {
	return [...]string{"message delivered", "request lost", "request late", "answer lost"}[k]
}

// String is what a trace shows.
func (f fate) String() string {
	s := ""
	if f.kind != delivered {
		s = " " + f.kind.String()
	}
	if f.silent {
		s += " silently"
	}
	if f.kind == requestLate {
		s += fmt.Sprintf(" by %v", f.late)
	}
	return s
}

// draw decides the fate of a message. It always draws as many numbers, so that one rate does not shift the others.
func (n *Network) draw(m *message) {
	who := fmt.Sprintf("%d %s", m.client, m.text)
	n.said[who]++
	r := rand.New(rand.NewPCG(hash(n.opts.Seed, who), uint64(n.said[who])))
	f := &m.fate
	f.up, f.down = latency(r), latency(r)
	chance, late, silent, tail, extra := r.Float64(), r.Float64(), r.Float64(), r.Float64(), r.Int64N(300e6)
	lateBy := r.Int64N(max(int64(n.faults.LateMost), 1))
	if f.tail = tail < n.faults.Tail; f.tail {
		d := 100*time.Millisecond + time.Duration(extra)
		if tail < n.faults.Tail/2 {
			f.up += d
		} else {
			f.down += d
		}
	}
	if m.conn.subscriber {
		if chance < n.faults.CutSubscription {
			f.kind = answerLost
		}
		return
	}
	switch {
	case chance >= n.faults.LoseRequest+n.faults.LoseAnswer:
		return
	case chance >= n.faults.LoseRequest:
		f.kind = answerLost
	case late < n.faults.Late:
		f.kind, f.late = requestLate, f.up+time.Duration(lateBy)
	default:
		f.kind = requestLost
	}
	f.silent = silent < 0.5
}

// latency is how long a hop takes, to the nanosecond.
func latency(r *rand.Rand) time.Duration { return time.Duration(50_000 + r.Int64N(900_000)) }

// window is a time in which the server hears nobody (client -1), or does not hear one of the clients.
type window struct {
	client   int
	from, to time.Duration
}

// plan draws the faults that strike at a time, and not a message.
func (n *Network) plan() {
	r := rand.New(rand.NewPCG(hash(n.opts.Seed, "plan"), 0))
	f := n.faults
	n.server.drift = (2*r.Float64() - 1) * f.Drift
	each := func(mean time.Duration, strike func(at time.Duration)) {
		if mean <= 0 {
			return
		}
		for at := spread(r, mean); at < f.Span; at += spread(r, mean) {
			strike(at)
		}
	}
	each(f.Flush, func(at time.Duration) { n.happenAt(at, n.flush) })
	each(f.Silence, func(at time.Duration) {
		n.windows = append(n.windows, window{-1, at, at + spread(r, f.WindowMost)/2})
	})
	each(f.Partition, func(at time.Duration) {
		n.windows = append(n.windows, window{r.IntN(max(f.Clients, 1)), at, at + spread(r, f.WindowMost)/2})
	})
}

// spread draws a time from 0 to twice the mean.
func spread(r *rand.Rand, mean time.Duration) time.Duration {
	return time.Duration(r.Int64N(max(2*int64(mean), 1)))
}

func (n *Network) flush() {
	if n.faults.Flush == 0 { // healed
		return
	}
	n.Reach("script flush")
	n.note(-1, "runs", "script flush", "")
	n.server.run(newPeer(), []string{"script", "flush"})
}

// held returns how much longer the server does not hear a client, as far as is worth to wait before looking again.
func (n *Network) held(client int) time.Duration {
	return n.closed("request held back", func(w window) bool { return w.client == client || w.client < 0 })
}

// partitioned is held for what a client is to hear.
func (n *Network) partitioned(client int) time.Duration {
	return n.closed("answer held back", func(w window) bool { return w.client == client })
}

func (n *Network) closed(what string, concerns func(window) bool) (longest time.Duration) {
	for _, w := range n.windows {
		if now := n.Since(); w.from <= now && now < w.to && concerns(w) {
			longest = max(longest, min(w.to-now, lookAgain))
		}
	}
	if longest > 0 {
		n.Reach(what)
	}
	return longest
}

// lookAgain is after how long a message that is held back may go on if the network has been healed.
const lookAgain = 250 * time.Millisecond

// hash mixes a number and a text.
func hash(seed uint64, text string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(text))
	x := h.Sum64() ^ seed*0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
