package worker

import (
	"context"
	"errors"
	"time"

	"github.com/latchkey-go/latchkey/faults/history"
	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/lock"
)

// errAgain has a leader stand again.
var errAgain = errors.New("again")

// lead has the caller be the leader for a while, and add to a set meanwhile. At the end of a round it stays until it was inside.
func (c *caller) lead(t target, end bool) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(c.rng.IntN(300))*time.Millisecond)
	defer cancel()
	if end {
		ctx = context.Background()
	}
	s := &candidacy{caller: c, target: t, deadline: history.Until(ctx)}
	g := guard.Must(guard.New(s, guard.Name("leader"), guard.Key(t.keys[0]), guard.Fenced()))
	work := func(ctx context.Context) error {
		st := s.stay
		st.held = ctx
		c.enter(st)
		c.update(st, c.owner, true)
		c.exit(st)
		if !st.in || c.rng.IntN(16) == 0 {
			return errAgain
		}
		return nil // which is a loss, and so not the end, unless the lead lasted
	}
	for guard.Lead(ctx, g, work) != nil && end {
		time.Sleep(10 * time.Millisecond)
	}
}

// candidacy is the locker of a Lead, each of whose attempts is a call in the history.
type candidacy struct {
	*caller
	target
	deadline int64
	stay     *stay // the latest
}

// Acquire implements lock.Locker.
func (s *candidacy) Acquire(ctx context.Context, r lock.Request) (lock.Hold, error) {
	s.begin()
	s.stay = &stay{target: s.target, call: s.ask(s.target, attempt{wait: -1, deadline: s.deadline})}
	s.w.place.Waiting.Add(1)
	defer s.w.place.Waiting.Add(-1)
	h, err := s.w.clients[0].Acquire(ctx, r)
	if err != nil {
		s.failed(ctx, s.stay.call, err)
		return nil, err
	}
	return &led{h.(fencedHold), s.stay}, nil
}

// fencedHold is what Lead looks for in a hold.
type fencedHold interface {
	lock.Hold
	Token() int64
	Remaining() time.Duration
}

// led is the lock of a lead.
type led struct {
	fencedHold
	stay *stay
}

// Release implements lock.Hold.
func (l *led) Release(ctx context.Context) error {
	if call := l.stay.call; l.stay.held == nil { // the context ended before the work could begin
		call.Enter(l.Context(), l.Token())
		call.Exit()
	}
	l.stay.call.Releasing(ctx)
	err := l.fencedHold.Release(ctx)
	l.stay.call.Release(err, errors.Is(err, lock.ErrLost))
	return err
}
