package guard

import (
	"context"
	"sync/atomic"
)

// Mode is how a guard is switched; see Registry.Switch. Its text form is "on", "off" or "shadow".
type Mode int

const (
	// On is how a guard begins: it does what its Spec says.
	On Mode = iota
	// Off runs the work without anything before it: no condition, no key, no lock. It is the kill switch, for a guard
	// that does more harm than good.
	Off
	// Shadow runs the work without the lock, and asks at the same time whether the lock would have been free: on a key
	// of its own, which only shadows take. It never waits, never refuses, and never fails a call. Event.Refused says
	// for what the guard would have had to wait. An answer that comes after the work has ended does not count.
	// HoldAtLeast keeps that key, too.
	Shadow
)

var modeTexts = textForms[Mode]{what: "mode", names: []string{"on", "off", "shadow"}}

// String returns the text form of m.
func (m Mode) String() string { return modeTexts.text(m) }

// MarshalText returns the text form of m, or an error for a value that is no mode.
func (m Mode) MarshalText() ([]byte, error) { return modeTexts.marshal(m) }

// UnmarshalText sets m from its text form. The error for any other text suggests the nearest.
func (m *Mode) UnmarshalText(text []byte) error { return modeTexts.unmarshal(m, text) }

// Switch sets the mode of the named guard, from the next call on. Only a guard whose Spec says Switchable can be switched;
// the error otherwise, or for an unknown name, leaves everything as it is. Calls in the modes Off and Shadow have outcomes
// of their own.
func (r *Registry) Switch(name string, m Mode) error {
	if _, err := m.MarshalText(); err != nil {
		return err
	}
	e, err := r.find(name)
	if err != nil {
		return err
	}
	if s := e.spec(); !s.Switchable {
		return s.errorf("can't be switched %v: its Spec does not say switchable", m)
	}
	e.mode.Store(int32(m))
	return nil
}

// member is the part of a call that only calls of a Registry have.
type member struct {
	presence presence
	nested   bool // another call of the Registry is around it
	mark     insideContext
	cancel   context.CancelCauseFunc
}

// presence is a call in its Registry, with what it does beside the work. It ends with the last of these parts.
type presence struct {
	at    *entry    // nil if the call was not let in
	outer *presence // of the guard before it in a Stack, which is the same call to the gate, and has this one as a part
	parts atomic.Int32
}

// part begins a part, which done ends.
func (p *presence) part() { p.parts.Add(1) }

func (p *presence) done() {
	if p.parts.Add(-1) > 0 {
		return
	}
	p.at.inside.Add(-1)
	if p.outer != nil {
		p.outer.done()
	} else {
		p.at.registry.gate.leave()
	}
}

// enter lets the call into its Registry, or reports false if that is draining. A Stack enters as one call.
func (c *call) enter() bool {
	e := c.entry
	c.member = &member{mark: insideContext{Context: c.ctx, registry: e.registry}}
	if before := c.before(e.registry); before != nil {
		c.nested, c.presence.outer = before.nested, &before.presence
		before.presence.part()
	} else if c.nested = e.registry.within(c.ctx); !e.registry.gate.enter(c.nested) {
		return false
	}
	e.inside.Add(1)
	c.presence.at = e
	c.presence.part()
	c.ctx, c.mode = &c.mark, Mode(e.mode.Load())
	return true
}

// before is the nearest call before c in its Stack that is of the same Registry, or nil.
func (c *call) before(r *Registry) *call {
	for b := c.above; b != nil; b = b.above {
		if b.entry != nil && b.entry.registry == r {
			return b
		}
	}
	return nil
}

// drained refuses a call because its Registry is draining.
func (c *call) drained() (ran bool, outcome string, err error) {
	return false, OutcomeDraining, c.fail(ErrOutage, ErrDraining)
}

// take is acquire for a call that a Drain must get out of the line: it returns ErrDraining then. Only the acquisition and its holds have
// the context that a Drain ends, and leave after it. All else of the call has the caller's.
func (c *call) take(keys []string) error {
	if c.entry != nil && (c.nested || c.above != nil) {
		c.noteOrder()
	}
	if c.entry == nil || c.nested || c.spec.Wait == 0 && c.spec.Busy != Replace {
		return c.acquire(keys)
	}
	before := c.ctx
	ctx, cancel := context.WithCancelCause(before)
	c.ctx, c.cancel = ctx, cancel
	defer func() { c.ctx = before }()
	stop := context.AfterFunc(c.entry.registry.drain, func() { cancel(ErrDraining) })
	defer stop() // also where the locker panics
	err := c.acquire(keys)
	if stop() {
		return err
	}
	cancel(ErrDraining) // if the one under way has not come as far
	return context.Cause(ctx)
}

// leave ends the call in its Registry.
func (c *call) leave() {
	if c.cancel != nil {
		c.cancel(nil)
	}
	c.mark.over.Store(true)
	if c.presence.at != nil {
		c.presence.done()
	}
}
