package sim

import (
	"io"
	"slices"
	"strings"
	"time"
)

// message is carried as a whole: the commands of a pipeline, or one channel's part of a subscription.
type message struct {
	client   int
	conn     *conn
	commands [][]string
	text     string // what it says, in names that do not differ between runs
	outcome  *outcome
}

// take returns the messages that are complete with data that was written to c.
func (c *conn) take(data string) []*message {
	c.unsent = append(c.unsent, data...)
	var all []*message
	request := &message{client: c.client, conn: c}
	for {
		args, size := parse(c.unsent)
		if args == nil {
			break
		}
		c.unsent = c.unsent[size:]
		if c.subscriber = c.subscriber || strings.EqualFold(args[0], "subscribe"); c.subscriber {
			all = append(all, c.split(args)...)
			continue
		}
		request.commands = append(request.commands, args)
	}
	if len(request.commands) > 0 {
		all = append(all, request)
	}
	return all
}

// split makes a message of each channel in a command of a subscriber. There are none after a Close: before it, go-redis by
// itself subscribes on a connection that its user is about to close.
func (c *conn) split(args []string) (all []*message) {
	if c.closed {
		return nil
	}
	if len(args) == 1 {
		return []*message{{client: c.client, conn: c, commands: [][]string{args}}}
	}
	for _, channel := range args[1:] {
		all = append(all, &message{client: c.client, conn: c, commands: [][]string{{strings.ToLower(args[0]), channel}}})
	}
	return all
}

// send puts a request on its way to the server.
func (n *Network) send(m *message) {
	c, o := m.conn, m.outcome
	if c.hole {
		return
	}
	n.count(m)
	n.note(m.client, "says", m.text, o.String())
	switch o.kind {
	case requestLate:
		n.after(o.late, o, func() { n.arriveLate(m) })
		n.breakOff(m, o.up)
	case requestLost:
		n.breakOff(m, o.up)
	default:
		c.requests = append(c.requests, m)
		n.approach(m, o.up)
	}
}

// count counts the outcome of a message, in all and for each of its scripts.
func (n *Network) count(m *message) {
	n.Reach(m.outcome.kind.String())
	if m.outcome.tail {
		n.Reach("tail of delay")
	}
	if m.outcome.kind == delivered {
		return
	}
	for _, args := range m.commands {
		n.Reach(m.outcome.kind.String() + ": " + n.names.script(args))
	}
}

// breakOff has a connection end without an answer after d, or just never answer again.
func (n *Network) breakOff(m *message, d time.Duration) {
	if m.outcome.silent {
		m.conn.cut(nil)
		return
	}
	n.after(d, m.outcome, func() { m.conn.cut(io.EOF) })
}

// approach has the next request of the message's connection arrive, not before d has passed. Requests stay in order.
func (n *Network) approach(m *message, d time.Duration) {
	c := m.conn
	c.up = n.happenAt(max(n.Since()+d, c.up+1), m.outcome, func() { n.arrive(c) })
}

// arrive has the server answer the next request of a connection.
func (n *Network) arrive(c *conn) {
	m := c.requests[0]
	if wait := n.held(m.client); wait > 0 {
		n.approach(m, wait+m.outcome.up)
		return
	}
	c.requests = c.requests[1:]
	if c.closed && !c.subscriber {
		n.Reach("request after its caller left")
	}
	answer := n.serve(m)
	if m.outcome.kind == answerLost {
		n.breakOff(m, m.outcome.down)
		return
	}
	n.carry(m, answer)
}

func (n *Network) serve(m *message) (answer string) {
	if m.conn.subscriber {
		return n.subscribe(m.conn, m.commands[0])
	}
	return n.execute(m, m.conn.peer, m.conn.closed)
}

// arriveLate has the server run a request that its sender gave up long ago.
func (n *Network) arriveLate(m *message) {
	if wait := n.held(m.client); wait > 0 {
		n.after(wait+m.outcome.up, m.outcome, func() { n.arriveLate(m) })
		return
	}
	n.execute(m, newPeer(), true)
}

// carry brings what belongs to a message to the client, behind all that is on its way there on the same connection.
func (n *Network) carry(m *message, what string) {
	m.conn.answers = append(m.conn.answers, what)
	n.bring(m, m.outcome.down)
}

// bring has the next thing that is carried to the client arrive, not before d has passed.
func (n *Network) bring(m *message, d time.Duration) {
	c := m.conn
	c.down = n.happenAt(max(n.Since()+d, c.down+1), m.outcome, func() {
		if wait := n.partitioned(c.client); wait > 0 {
			n.bring(m, wait)
			return
		}
		what := c.answers[0]
		c.answers = c.answers[1:]
		c.receive(what)
	})
}

// execute runs the commands of a message and returns the answers. Commands that travel together are not in the same
// order in each run, so they run in the order of their texts.
func (n *Network) execute(m *message, p *peer, late bool) string {
	answers := make([]string, len(m.commands))
	for _, i := range n.inOrder(m) {
		args := m.commands[i]
		if answers[i] = n.instead(m, p, args); answers[i] != "" {
			continue
		}
		answer := n.server.run(p, args)
		answers[i] = answer
		n.note(m.client, "ran", n.names.command(m.client, args), "-> "+line(answer))
		n.publish()
		if n.opts.Executed != nil {
			n.opts.Executed(Execution{Client: m.client, Script: n.names.script(args), Args: args, Answer: answer, Late: late})
		}
	}
	return strings.Join(answers, "")
}

// inOrder returns the places of a message's commands in the order in which they are run.
func (n *Network) inOrder(m *message) []int {
	places, texts := make([]int, len(m.commands)), make([]string, len(m.commands))
	for i, args := range m.commands {
		places[i], texts[i] = i, n.names.command(m.client, args)
	}
	slices.SortStableFunc(places, func(a, b int) int { return strings.Compare(texts[a], texts[b]) })
	return places
}

// line puts an answer into one line.
func line(answer string) string {
	return strings.ReplaceAll(strings.TrimSuffix(answer, "\r\n"), "\r\n", " ")
}
