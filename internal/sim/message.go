package sim

import (
	"io"
	"strings"
	"time"
)

// message is what is carried as a whole: a pipeline of commands, or one channel's part of a subscription.
type message struct {
	client   int
	conn     *conn
	commands [][]string
	text     string // what it says, in names that do not differ between runs
	fate     fate
}

// take returns what is complete with data that was written to c.
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
		name := strings.ToLower(args[0])
		if c.subscriber = c.subscriber || name == "subscribe"; !c.subscriber {
			request.commands = append(request.commands, args)
			continue
		}
		if len(args) == 1 {
			all = append(all, &message{client: c.client, conn: c, commands: [][]string{args}})
		}
		for _, channel := range args[1:] {
			all = append(all, &message{client: c.client, conn: c, commands: [][]string{{name, channel}}})
		}
	}
	if c.subscriber && c.closed {
		return nil // go-redis subscribes anew on a connection that its user closes next
	}
	if len(request.commands) > 0 {
		all = append(all, request)
	}
	return all
}

// send puts a request on its way to the server.
func (n *Network) send(m *message) {
	n.draw(m)
	c, f := m.conn, &m.fate
	if c.hole {
		return
	}
	n.count(m)
	n.note(m.client, "says", m.text, f.String())
	switch f.kind {
	case requestLost, requestLate:
		n.breakAfter(c, f)
		if f.kind == requestLate {
			n.after(f.late, func() { n.deliverLate(m) })
		}
		return
	}
	c.up = max(n.Since()+f.up, c.up+1)
	c.up = n.happenAt(c.up, func() { n.arrive(m) })
}

// count counts what becomes of a message, in all and for each of its scripts.
func (n *Network) count(m *message) {
	f := m.fate
	n.Reach(f.kind.String())
	if f.tail {
		n.Reach("tail of delay")
	}
	if f.kind == delivered {
		return
	}
	for _, args := range m.commands {
		n.Reach(f.kind.String() + ": " + n.names.script(args))
	}
}

// breakAfter has a connection end without an answer, or just never answer again.
func (n *Network) breakAfter(c *conn, f *fate) {
	if f.silent {
		c.cutLocked(nil)
		return
	}
	n.after(f.up, func() { c.cutLocked(io.EOF) })
}

// arrive runs a request, and puts its answer on its way.
func (n *Network) arrive(m *message) {
	c := m.conn
	if wait := n.held(m.client); wait > 0 {
		c.up = max(n.Since()+wait+m.fate.up, c.up+1)
		c.up = n.happenAt(c.up, func() { n.arrive(m) })
		return
	}
	if c.subscriber {
		n.reply(m, n.subscribe(c, m.commands[0]))
		return
	}
	if c.closed {
		n.Reach("request after its caller left")
	}
	answer := n.execute(m, c.server, c.closed)
	if m.fate.kind == answerLost {
		n.breakAfter(c, &m.fate)
		return
	}
	n.reply(m, answer)
}

// reply puts an answer on its way.
func (n *Network) reply(m *message, answer string) { n.carry(m.conn, m.fate.down, answer) }

// carry brings something to a client, behind all that is on its way there on the same connection.
func (n *Network) carry(c *conn, delay time.Duration, what string) {
	c.down = max(n.Since()+delay, c.down+1)
	c.down = n.happenAt(c.down, func() {
		if wait := n.partitioned(c.client); wait > 0 {
			n.carry(c, wait+delay, what)
			return
		}
		c.receive(what)
	})
}

// deliverLate runs a request that its sender gave up long ago.
func (n *Network) deliverLate(m *message) {
	if wait := n.held(m.client); wait > 0 {
		n.after(wait+m.fate.up, func() { n.deliverLate(m) })
		return
	}
	n.execute(m, newPeer(), true)
}

// execute runs the commands of a message.
func (n *Network) execute(m *message, p *peer, late bool) string {
	var answers strings.Builder
	for _, args := range m.commands {
		answer := n.server.run(p, args)
		answers.WriteString(answer)
		n.names.learn(args, answer)
		n.note(m.client, "ran", n.names.command(m.client, args), "-> "+line(answer))
		n.publish()
		if n.opts.Executed != nil {
			n.opts.Executed(Execution{At: n.Since(), Client: m.client, Script: n.names.script(args), Args: args, Answer: answer, Late: late})
		}
	}
	return answers.String()
}

// line puts an answer into one line.
func line(answer string) string {
	return strings.ReplaceAll(strings.TrimSuffix(answer, "\r\n"), "\r\n", " ")
}
