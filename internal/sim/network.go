package sim

import (
	"cmp"
	"context"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/alicebob/miniredis/v2"
)

// settling is how long the network waits for all who act at the same instant.
const settling = time.Nanosecond

// Options sets up a Network.
type Options struct {
	// Seed decides all delays and faults.
	Seed uint64
	// Faults is what may go wrong, until [Network.Heal].
	Faults Faults
	// Names makes what is said comparable between runs.
	Names Names
	// Executed, if not nil, is called after the server has run a command. It may note and count things, and look at the
	// server, but not change anything.
	Executed func(Execution)
}

// Execution is one command that the server ran.
type Execution struct {
	Client int
	// Script is the name of a script, as Names has it, or the command.
	Script string
	// Args is the whole command, and Answer what the server said, as it is on the wire.
	Args   []string
	Answer string
	// Late says that nobody waits for the answer any more.
	Late bool
}

// Network is the network and the server behind it. It must be made and closed in the same bubble. It is safe for concurrent
// use.
type Network struct {
	opts  Options
	start time.Time
	wake  chan struct{} // something was written
	stop  chan struct{}
	done  chan struct{}
	trace Trace
	tally tally

	mu      sync.Mutex
	server  *server
	replica *server // to which demoted connections lead
	names   *namer
	events  []event                    // by time
	taken   map[time.Duration]*outcome // the instants of events, and which message they are about
	conns   []*conn                    // open ones, in the order of dialling
	written []writing                  // what was not sent yet, in the order of time
	said    map[string]int             // how often a client has said something
	faults  Faults
	windows []window
	back    atomic.Int64
	closed  bool
}

// New starts a network with an empty server.
func New(opts Options) (*Network, error) {
	s, err := newServer(int(opts.Seed))
	if err != nil {
		return nil, err
	}
	replica, err := newServer(0)
	if err != nil {
		return nil, err
	}
	replica.Server().SetPreHook(refuseWrites)
	n := &Network{
		opts: opts, start: time.Now(), faults: opts.Faults,
		wake: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{}),
		server: s, replica: replica, names: newNamer(opts.Names), taken: map[time.Duration]*outcome{}, said: map[string]int{},
	}
	s.listeners = n.listeners
	n.plan()
	go n.run()
	return n, nil
}

// Close ends all connections and the network's goroutine. Close the clients before it.
func (n *Network) Close() {
	close(n.stop)
	<-n.done
	n.mu.Lock()
	defer n.mu.Unlock()
	n.closed = true
	for _, c := range slices.Clone(n.conns) {
		c.cut(net.ErrClosed)
	}
	n.server.Close()
	n.replica.Close()
}

// Dialer returns what go-redis is to dial with for the client of that number.
func (n *Network) Dialer(client int) func(ctx context.Context, network, addr string) (net.Conn, error) {
	return func(context.Context, string, string) (net.Conn, error) {
		n.mu.Lock()
		defer n.mu.Unlock()
		if n.closed {
			return nil, net.ErrClosed
		}
		c := newConn(n, client)
		n.conns = append(n.conns, c)
		return c, nil
	}
}

// Heal ends all faults. Messages that were lost or sent late before stay so.
func (n *Network) Heal() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.faults, n.windows = Faults{}, nil
}

// Server is the server, to look at. Looking takes no virtual time.
func (n *Network) Server() *miniredis.Miniredis {
	n.server.tick()
	return n.server.Miniredis
}

// ServerTime is the time by the server's clock.
func (n *Network) ServerTime() time.Time { return n.server.now() }

// Keys lists the keys of the server.
func (n *Network) Keys() []string { return n.Server().Keys() }

// TTL is how long a key of the server lasts; 0 is for ever.
func (n *Network) TTL(key string) time.Duration { return n.Server().TTL(key) }

// Since returns how much virtual time has passed since New.
func (n *Network) Since() time.Duration { return time.Since(n.start) }

// run lets happen what is due, until Close.
func (n *Network) run() {
	defer close(n.done)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-n.wake:
		case <-n.stop:
			return
		}
		if next, ok := n.step(); ok {
			timer.Reset(next - n.Since())
		}
	}
}

// step does all that is due and returns when there is more to do.
func (n *Network) step() (next time.Duration, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	now := n.Since()
	n.turn(now)
	for len(n.events) > 0 && n.events[0].at <= now {
		e := n.events[0]
		n.events = n.events[1:]
		delete(n.taken, e.at)
		e.happen()
	}
	if len(n.events) > 0 {
		next, ok = n.events[0].at, true
	}
	if len(n.written) > 0 && (!ok || n.written[0].at+settling < next) {
		next, ok = n.written[0].at+settling, true
	}
	return next, ok
}

// writing is the data that a client wrote at an instant.
type writing struct {
	conn *conn
	at   time.Duration
	data string
}

// wrote records data that were written to c. The caller holds the mutex.
func (n *Network) wrote(c *conn, data string) {
	n.written = append(n.written, writing{c, n.Since(), data})
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

// turn sends what was written before now, in an order that depends on nothing but what it says.
func (n *Network) turn(now time.Duration) {
	var all []*message
	for len(n.written) > 0 && n.written[0].at < now {
		w := n.written[0]
		n.written = n.written[1:]
		all = append(all, w.conn.take(w.data)...)
	}
	for _, m := range all {
		m.text = n.names.peek(m)
	}
	slices.SortStableFunc(all, func(a, b *message) int {
		return cmp.Or(a.client-b.client, strings.Compare(a.text, b.text))
	})
	for i, m := range all {
		m.text = n.names.text(m)
		if i > 0 && all[i-1].client == m.client && all[i-1].text == m.text {
			m.outcome = all[i-1].outcome
		} else {
			m.outcome = n.draw(m)
		}
		n.send(m)
	}
}

// after has f happen when d has passed, or a little later.
func (n *Network) after(d time.Duration, about *outcome, f func()) { n.happenAt(n.Since()+d, about, f) }

// happenAt has f happen at the given instant or a little later, when nothing else happens but what is about the same. It
// returns the instant.
func (n *Network) happenAt(at time.Duration, about *outcome, f func()) time.Duration {
	for n.taken[at] != nil && n.taken[at] != about {
		at++
	}
	n.taken[at] = about
	behind, _ := slices.BinarySearchFunc(n.events, at+1, func(e event, at time.Duration) int { return cmp.Compare(e.at, at) })
	n.events = slices.Insert(n.events, behind, event{at, f})
	return at
}

// event is something that happens at an instant. The network's mutex is held when it does.
type event struct {
	at     time.Duration
	happen func()
}
