package pubsub

import (
	"slices"
	"time"
)

// channel is one that somebody wants, or wanted until a moment ago. The subscriber's mutex guards it.
type channel struct {
	name          string
	subscriptions []*Subscription // that are not closed
	changed       chan struct{}   // closed and replaced by each hint

	// A channel that has no subscriptions any more lingers as long as it has a connection, and for no longer than Linger.
	// One that has subscriptions again may still be said to linger: it often has none again soon.
	lingers bool
	until   time.Time // if it lingers

	at *connection // where it is subscribed; nil while it is unassigned

	// What was sent on the connection, where answers come in the order of the commands.
	subscribed    bool // the last command was a subscription
	again         bool // somebody has come who reads what is said after a subscription of its own
	sent          int  // subscriptions, on all connections
	subscribing   int  // subscriptions without an answer
	unsubscribing int  // cancellations without an answer
}

func (ch *channel) wanted() bool { return len(ch.subscriptions) > 0 || ch.lingers }

// live reports whether a message that is published now will be received.
func (ch *channel) live() bool { return ch.subscribed && ch.subscribing == 0 }

// read reports whether somebody reads what is said on the channel.
func (ch *channel) read() bool {
	return slices.ContainsFunc(ch.subscriptions, func(s *Subscription) bool { return s.mail != nil })
}

// hint wakes those who wait for the channel: its lock may be free.
func (ch *channel) hint() {
	close(ch.changed)
	ch.changed = make(chan struct{})
}

// mail is the messages of a channel that somebody has not read yet.
type mail struct {
	from     int // the first subscription of the channel behind which messages count
	messages []string
	size     int  // of these, in bytes
	missed   bool // there may have been others
}

// mostMail bounds the messages that wait to be read, in bytes, each with what it takes to keep it.
const mostMail = 256 << 10

// put adds a message, or notes that there was one.
func (m *mail) put(message string) {
	const each = 16
	if m.size+len(message)+each > mostMail {
		m.missed = true
		return
	}
	m.messages, m.size = append(m.messages, message), m.size+len(message)+each
}

// wake has the reader of c look, now or when it next can.
func wake(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
