package zklock

import "time"

// proof knows until when the session can't have expired, whatever the client library believes.
//
// The leader of the ensemble decides about that. It ends a session that it has not heard of for the negotiated timeout
// T, counted on its own monotonic clock and rounded up. A client's request is heard of
//
//   - at once by a single server, or by a leader to which the client is connected;
//   - with the next ping of the leader by another server, which the leader sends each half tick and which asks for all sessions
//     that have sent something. A tick is half of the least timeout that servers grant, so half a tick is no more than T/4.
//
// An answer to a read says nothing about the leader: a server that is cut off from it goes on answering for some time.
// A write is answered once most servers have it, through a leader that still is one and that still knows the session.
// So a write that was sent at w and answered proves two things: the leader has heard of all requests that were answered
// before w - T/4 on the same connection, and of the handshake of this connection, which always goes to it. If the
// latest of these was sent at a, the session lives until a + T. That is still true if another leader comes after w,
// because a new leader begins to count anew.
//
// Both ends are measured by the clock of the process, and the leader's measurement lies between them.
type proof struct {
	timeout  time.Duration // T
	attached time.Time     // when the handshake of the connection was sent
	touches  []touch       // the answered requests on it, the last ones
	until    time.Time
}

// touch is a question that was answered.
type touch struct{ sent, answered time.Time }

// attach begins a connection. A new session is a write, and proves itself.
func (p *proof) attach(sent time.Time, timeout time.Duration, created bool) {
	p.timeout, p.attached, p.touches = timeout, sent, nil
	if created {
		p.until = sent.Add(timeout)
	}
}

// note adds a question that was answered, and what it proves if it was a write.
func (p *proof) note(sent, answered time.Time, write bool) {
	if write {
		p.confirm(sent.Add(-p.timeout / 4))
	}
	if n := len(p.touches); n > 0 && sent.Sub(p.touches[n-1].sent) < p.timeout/50 {
		return // near enough to the one before
	}
	p.touches = append(p.touches, touch{sent, answered})
	if len(p.touches) > 64 {
		p.touches = append(p.touches[:0], p.touches[len(p.touches)-32:]...)
	}
}

// confirm notes that the leader has heard of what was answered before.
func (p *proof) confirm(before time.Time) {
	last := p.attached
	for _, t := range p.touches {
		if !t.answered.After(before) && t.sent.After(last) {
			last = t.sent
		}
	}
	if until := last.Add(p.timeout); until.After(p.until) {
		p.until = until
	}
}
