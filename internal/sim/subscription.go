package sim

import (
	"io"
	"slices"
	"strings"
)

// subscribe runs a command of a subscriber and returns the answer.
func (n *Network) subscribe(c *conn, args []string) string {
	n.note(c.client, "ran", n.names.command(c.client, args), "")
	switch strings.ToLower(args[0]) {
	case "subscribe":
		if !c.closed && !c.hole {
			c.channels = append(c.channels, args[1])
		}
	case "unsubscribe":
		c.channels = slices.DeleteFunc(c.channels, func(name string) bool { return name == args[1] })
	default: // ping
		return "*2\r\n$4\r\npong\r\n$0\r\n\r\n"
	}
	return push(args[0], args[1], len(c.channels))
}

// publish sends what the last command published to those who listen.
func (n *Network) publish() {
	for _, p := range n.server.published {
		for _, c := range slices.Clone(n.conns) {
			if slices.Contains(c.channels, p.channel) {
				n.notify(c, p)
			}
		}
	}
	n.server.published = nil
}

// notify sends a message to a subscriber, or breaks its connection instead.
func (n *Network) notify(c *conn, p publication) {
	m := &message{client: c.client, conn: c, commands: [][]string{{"message", p.channel, p.payload}}}
	m.text = n.names.text(m)
	o := n.draw(m)
	m.outcome = o
	n.note(c.client, "is sent", m.text, o.String())
	if o.kind != delivered {
		n.Reach("subscription cut")
		n.after(o.down, o, func() { c.cut(io.EOF) })
		return
	}
	n.carry(m, push("message", p.channel, p.payload))
}

// listeners counts the subscribers of a channel.
func (n *Network) listeners(channel string) (count int) {
	for _, c := range n.conns {
		if slices.Contains(c.channels, channel) {
			count++
		}
	}
	return count
}

// Subscriptions lists the channels that somebody is subscribed to.
func (n *Network) Subscriptions() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	var all []string
	for _, c := range n.conns {
		all = append(all, c.channels...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}
