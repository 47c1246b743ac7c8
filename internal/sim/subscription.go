package sim

import (
	"io"
	"slices"
)

// subscribe runs a command of a subscriber and returns the answer.
func (n *Network) subscribe(c *conn, args []string) string {
	if c.closed {
		return ""
	}
	switch args[0] {
	case "subscribe":
		c.channels = append(c.channels, args[1])
	case "unsubscribe":
		c.channels = slices.DeleteFunc(c.channels, func(name string) bool { return name == args[1] })
	default: // ping
		return "*2\r\n$4\r\npong\r\n$0\r\n\r\n"
	}
	n.note(c.client, "ran", n.names.command(c.client, args), "")
	return push(args[0], args[1], len(c.channels))
}

// publish sends what the last command published to those who listen.
func (n *Network) publish() {
	for _, p := range n.server.published {
		for _, c := range n.conns {
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
	n.draw(m)
	n.note(c.client, "is sent", m.text, m.fate.String())
	if m.fate.kind != delivered {
		n.Reach("subscription cut")
		n.after(m.fate.down, func() { c.cutLocked(io.EOF) })
		return
	}
	n.carry(c, m.fate.down, push("message", p.channel, p.payload))
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
