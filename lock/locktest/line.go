package locktest

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/latchkey-go/latchkey/lock"
)

// wait starts a call that waits in line for a lock that others hold.
func (s *schedule) wait() {
	w := &waiter{under: s.place(), r: s.request(s.rand.IntN(keysPerSchedule), choose(s, s.kinds))}
	if w.r.Wait = -1; !s.waits || s.model.admit(w.under, w.r).outcome != busy {
		return
	}
	w.detached = true // to be canceled by itself
	s.note("wait: %v, %v", s.text(w.r), w.under)
	var ctx context.Context
	ctx, w.cancel = context.WithCancelCause(w.context())
	s.waiters = append(s.waiters, w)
	s.model.waiting[w.r.Key]++
	go func() {
		w.hold, w.err = s.locker.Acquire(ctx, w.r)
		s.served <- w
	}()
}

// cancel sends one of the waiters away. It may be served all the same, if that came first.
func (s *schedule) cancel() {
	if len(s.waiters) == 0 {
		return
	}
	w := choose(s, s.waiters)
	s.note("cancel the wait: %v", s.text(w.r))
	w.canceled = true
	w.cancel(errCause)
	for s.err == nil && slices.Contains(s.waiters, w) {
		s.awaitOne("a cancelled wait does not end")
	}
}

// catchUp notes who has been served in the meantime, and waits for those whose turn it is.
func (s *schedule) catchUp() {
	for s.err == nil && (len(s.served) > 0 || slices.ContainsFunc(s.waiters, s.owed)) {
		s.awaitOne("the lock is free, and nobody in line gets it")
	}
}

// owed reports whether w, or another one in the same line, must be served now. Readers may have to wait beside readers, if
// a writer is ahead of them.
func (s *schedule) owed(w *waiter) bool {
	holders := s.model.holders(w.r.Key)
	return len(holders) == 0 || w.r.Kind == lock.Permit && room(w.r, holders)
}

func (s *schedule) awaitOne(otherwise string) {
	select {
	case w := <-s.served:
		s.serve(w)
	case <-time.After(s.suite.patience):
		s.fail("%s", otherwise)
	}
}

// serve notes the hold that w has got.
func (s *schedule) serve(w *waiter) {
	now := time.Now()
	s.waiters = slices.DeleteFunc(s.waiters, func(o *waiter) bool { return o == w })
	s.model.waiting[w.r.Key]--
	switch {
	case w.canceled && errors.Is(w.err, errCause):
		s.saw("canceled")
		return
	case w.err != nil:
		s.fail("Acquire() = %w after a wait, want a hold", w.err)
		return
	}
	s.saw("served")
	holders := s.model.holders(w.r.Key)
	sure := slices.DeleteFunc(slices.Clone(holders), func(c *call) bool { return c.doubtful(now) })
	if !room(w.r, sure) {
		s.fail("served beside %v: %v", sure, s.text(w.r))
	}
	for _, c := range holders {
		if c.state == live && c.hold.Context().Err() == nil && !room(w.r, []*call{c}) {
			s.fail("served before %v was notified of its end: %v", c, s.text(w.r))
		}
	}
	c := s.model.add(w.under, w.r, w.hold, 0, now, now)
	c.canceled = w.canceled
	s.note("... a wait is over, got %v", c)
}
