package check

import (
	"fmt"
	"strings"

	"github.com/latchkey-go/latchkey/faults/history"
)

// A call is one attempt to take something, and what came of it. Times are 0 for what has not happened.
type call struct {
	ask history.Event

	answered int64      // when the attempt came back
	answer   history.Op // Enter, Lost, Busy or Failed
	reason   string     // the text of its error
	token    int64

	entered int64   // the section begins
	looks   []int64 // when the context was good, entered included
	left    int64   // the section ends
	leftBy  history.Op

	released int64 // the release came back
	release  history.Event

	writes []history.Event
}

// take adds an event of the call. It reports false if the event has no place there.
func (c *call) take(e history.Event) bool {
	inside := c.entered != 0 && c.left == 0
	switch e.Op {
	case history.Enter, history.Busy, history.Failed, history.Lost:
		if e.Op == history.Lost && inside {
			c.left, c.leftBy = e.At, e.Op
			return true
		}
		if c.answered != 0 {
			return false
		}
		c.answered, c.answer, c.reason, c.token = e.At, e.Op, e.Error, e.Token
		if e.Op == history.Enter {
			c.entered, c.looks = e.At, append(c.looks, e.At)
		}
	case history.Look:
		c.looks = append(c.looks, e.At)
		return inside
	case history.Exit:
		c.left, c.leftBy = e.At, e.Op
		return inside
	case history.Released, history.NotHeld, history.Unreleased:
		c.released, c.release = e.At, e
		return c.answered != 0 && !inside
	case history.Write, history.Refused:
		c.writes = append(c.writes, e)
	default:
		return false
	}
	return true
}

// lastLook is when the context was last known to be good.
func (c *call) lastLook() int64 { return c.looks[len(c.looks)-1] }

// lookedAfter reports whether the context was good after at.
func (c *call) lookedAfter(at int64) bool { return c.entered != 0 && c.lastLook() > at }

// A class is how the calls of a kind exclude each other.
type class int

const (
	exclusive class = iota // all but those of its owner
	shared                 // all but readers and those of its owner
	counted                // what exceeds the limit
	open                   // nobody
)

func (c *call) class() class {
	switch c.ask.Kind {
	case "read":
		return shared
	case "semaphore", "permit":
		return counted
	case "latch", "limiter":
		return open
	}
	return exclusive
}

// excludes reports whether two calls may not be inside of a lock together.
func (c *call) excludes(o *call) bool {
	a, b := c.class(), o.class()
	reenters := c.ask.Owner == o.ask.Owner && c.ask.Kind != "mutex"
	return a <= shared && b <= shared && (a == exclusive || b == exclusive) && !reenters
}

// tell describes a call for the reader of a violation, with the lines of the log that show it.
func (t *timeline) tell(c *call) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s call %d (%s) owner %s, %s", c.ask.Proc, c.ask.Call, where(c.ask), c.ask.Owner, c.ask.Kind)
	if c.token != 0 {
		fmt.Fprintf(&b, " token %d", c.token)
	}
	fmt.Fprintf(&b, ": asked %s", t.at(c.ask.At))
	if c.answered != 0 {
		fmt.Fprintf(&b, ", %s %s", c.answer, t.at(c.answered))
	}
	if c.reason != "" {
		fmt.Fprintf(&b, " (%s)", c.reason)
	}
	if len(c.looks) > 1 {
		fmt.Fprintf(&b, ", last good look %s", t.at(c.lastLook()))
	}
	if c.leftBy != "" {
		fmt.Fprintf(&b, ", %s %s", c.leftBy, t.at(c.left))
	}
	if c.released != 0 {
		fmt.Fprintf(&b, ", %s %s (%s)", c.release.Op, t.at(c.released), where(c.release))
	}
	return b.String()
}

// tellAll describes calls, a line each.
func (t *timeline) tellAll(calls []*call) string {
	var b strings.Builder
	for _, c := range calls {
		b.WriteString("\n\t" + t.tell(c))
	}
	return b.String()
}
