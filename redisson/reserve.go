package redisson

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson/internal/pubsub"
)

// reservation is locks that were taken together. An Acquire under its context gets one of them without a question.
type reservation struct {
	c     *Client
	ctx   context.Context // of who has asked
	above *reservation    // another one of the call; may be nil
	mu    sync.Mutex
	parts []*reserved // that nobody has acquired
}

// reserved is one of them: a holder in Redis, and the hold that an Acquire makes of it.
type reserved struct {
	ho     holder
	h      hold
	at     int // of the request
	took   bool
	answer answer // to an attempt to take it alone
}

type reservationKey struct{ c *Client }

// Reserve takes the locks of rs together, in one round trip to each master: see [lock.Locker]. A script is for fifty of them, or for those of a slot where
// there is a map of masters. Who does not wait gets lock.ErrBusy if one of them is busy. Any other error is the cause of ctx, or says why Redis did not
// answer; then nothing is held.
func (c *Client) Reserve(ctx context.Context, rs []lock.Request) (context.Context, int, func(), error) {
	above, _ := ctx.Value(reservationKey{c}).(*reservation)
	res := &reservation{c: c, ctx: ctx, above: above}
	n, err := res.take(ctx, rs, len(rs) > 0 && rs[0].Wait == 0)
	if len(res.parts) > 0 {
		ctx = context.WithValue(ctx, reservationKey{c}, res)
	}
	return ctx, n, res.leave, err
}

// take takes all locks or none, or those before the first that can't be had. It returns for how many requests, from the first one on, nobody has to
// wait. An error leaves nothing.
func (res *reservation) take(ctx context.Context, rs []lock.Request, all bool) (n int, err error) {
	c, began := res.c, time.Now()
	if err := c.registry.begin(); err != nil {
		return 0, err
	}
	defer c.registry.end()
	if len(rs) == 0 || c.apart.Load() {
		return 0, nil
	}
	by := began.Add(c.patience(rs[0].Wait))
	want, n := res.reservable(ctx, rs, by)
	if len(want) == 0 || all && n < len(rs) {
		return 0, nil
	}
	if !c.askTogether(ctx, by, want, all) {
		c.giveUp(ctx, want)
		return 0, nil
	}
	missing := slices.IndexFunc(want, func(r *reserved) bool { return !r.took })
	if missing < 0 {
		res.parts = want
		return n, nil
	}
	if err := c.refusal(ctx, want[missing], all, began); err != nil || all {
		c.giveUp(ctx, want)
		return 0, err
	}
	res.parts = want[:missing]
	c.giveUp(ctx, want[missing:])
	return want[missing].at, nil
}

// askTogether asks for all that are wanted, and notes what each has got. It returns false if that is not to be relied on.
func (c *Client) askTogether(ctx context.Context, by time.Time, want []*reserved, all bool) bool {
	chunks := c.chunks(want)
	calls := make([]call, len(chunks))
	for i, chunk := range chunks {
		calls[i] = reserveCall(chunk, all)
	}
	answers := c.askEach(ctx, by, append(calls, c.proofs(want)...))
	for i, chunk := range chunks {
		c.noteReserved(chunk, answers[i])
	}
	return c.proven(want, answers[len(chunks):])
}

// refusal is the error for the first lock that could not be had: nil if an Acquire says why.
func (c *Client) refusal(ctx context.Context, one *reserved, all bool, began time.Time) error {
	switch a := one.answer; {
	case a.Err != nil && !lasting(a.Err):
		return a.Err
	case a.Err == nil && a.Values[0] == 0 && all:
		busy := &lock.BusyError{Remaining: max(0, duration(a.Values[1])), Waited: time.Since(began)}
		c.heldBy(ctx, busy, one.ho.lockID())
		return busy
	}
	return nil
}

// reservable returns a holder for each lock that can be asked for with others, and the length of the part of rs that these are for. One that
// is re-entered is acquired as ever, and so is what follows one for which others of this process wait, or that is refused.
func (res *reservation) reservable(ctx context.Context, rs []lock.Request, by time.Time) (want []*reserved, n int) {
	c, names := res.c, map[string]bool{}
	for i, r := range rs {
		name := c.mapName(r.Key)
		if r.Validate() != nil || c.checkSlot(name) != nil {
			return want, i
		}
		c.awaitMember(ctx, name, by)
		outer, err := c.ancestor(ctx, lockID{name, r.Kind.Family()}, r.Kind)
		if err != nil {
			return want, i
		}
		if outer != nil || names[name] || res.above.find(name, r.Kind, false) != nil {
			continue
		}
		names[name] = true
		once := r
		once.Wait = 0
		one := &reserved{ho: c.newHolder(name, once), at: i}
		if r.Wait != 0 && c.lines.waits(one.ho.lineID()) {
			return want, i
		}
		want = append(want, one)
	}
	return want, len(rs)
}

// chunks cuts what is wanted into parts for a script each. Where there is a map of masters, the keys of a script have to be in one slot: a script goes where
// the first of them is.
func (c *Client) chunks(want []*reserved) (chunks [][]*reserved) {
	last := map[int]int{} // of chunks, by slot
	mapped, slot := c.topology.Mapped(), 0
	for _, one := range want {
		if mapped {
			slot = pubsub.Slot(one.ho.name())
		}
		i, some := last[slot]
		if !some || len(chunks[i]) >= packSize {
			i = len(chunks)
			chunks, last[slot] = append(chunks, nil), i
		}
		chunks[i] = append(chunks[i], one)
	}
	return chunks
}

// reserveCall takes all that are wanted or none; or else those before the first that can't be had.
func reserveCall(want []*reserved, all bool) call {
	cl := call{Script: reserve, Args: []any{all, len(want)}}
	for _, one := range want {
		kind := one.ho.kind
		if handsOver(one.ho.family) {
			kind = lock.Exclusive
		}
		own := one.ho.family.enter(&one.ho, one.ho.asked)
		cl.Keys = append(cl.Keys, own.Keys...)
		cl.Args = append(append(cl.Args, kind.String(), len(own.Keys), len(own.Args)), own.Args...)
	}
	return cl
}

// noteReserved notes for each of a chunk what Redis has answered.
func (c *Client) noteReserved(chunk []*reserved, a answer) {
	got := 0
	if a.Err == nil {
		got = int(a.Values[1])
	}
	for i, one := range chunk {
		one.answer, one.took = a, i < got
		switch {
		case one.took:
			one.answer.Values = []int64{1, a.Values[4+2*i], a.Values[5+2*i]}
		case a.Err == nil:
			one.answer.Values = a.Values[2:4]
		}
		if a.Doubts > 0 {
			c.registry.tried(&one.ho, a)
		}
	}
}

// provenKeys is for how many locks a client has to see that each is where its own name leads to, before it relies on that.
const provenKeys = 32

// proofs asks for each lock but the first by its own name, as long as that is to be proven: a proxy in front of several servers may send a script where
// the first of its keys is. A map of masters is proof enough.
func (c *Client) proofs(want []*reserved) (calls []call) {
	if c.topology.Mapped() || c.located.Load() >= provenKeys {
		return nil
	}
	for _, one := range want[1:min(len(want), provenKeys)] { // all in the pipeline of the scripts
		calls = append(calls, call{Script: lockState, Keys: one.ho.keys[:], Args: []any{""}})
	}
	return calls
}

// proven notes what proofs have shown. Where a lock was taken somewhere else, nothing is asked together any more.
func (c *Client) proven(want []*reserved, answers []answer) bool {
	for i, a := range answers {
		switch {
		case !want[i+1].took || a.Err != nil:
		case a.Yes():
			c.located.Add(1)
		default:
			c.apart.Store(true)
			return false
		}
	}
	return true
}

// claim makes a hold of a lock that a reservation above ctx has for r, or returns nil.
func (c *Client) claim(ctx context.Context, name string, r lock.Request) lock.Hold {
	res, _ := ctx.Value(reservationKey{c}).(*reservation)
	if res == nil {
		return nil
	}
	one := res.find(name, r.Kind, true)
	if one == nil {
		return nil
	}
	one.h.prepare(ctx, c, &one.ho, r)
	one.ho.begin(&one.h)
	if one.h.enter(0, &one.answer) != nil { // its lease is over, or the caller has gone
		return nil
	}
	return one.h.public()
}

// find returns what res, which may be nil, or one above it has of a lock, and nil if it has nothing. It can be taken out.
func (res *reservation) find(name string, kind lock.Kind, out bool) (one *reserved) {
	for ; res != nil && one == nil; res = res.above {
		res.mu.Lock()
		i := slices.IndexFunc(res.parts, func(one *reserved) bool { return one.ho.name() == name && one.ho.kind == kind })
		if i >= 0 {
			one = res.parts[i]
		}
		if i >= 0 && out {
			res.parts = slices.Delete(res.parts, i, i+1)
		}
		res.mu.Unlock()
	}
	return one
}

// leave gives back what nobody has acquired.
func (res *reservation) leave() {
	res.mu.Lock()
	parts := res.parts
	res.parts = nil
	res.mu.Unlock()
	res.c.giveUp(res.ctx, parts)
}

// giveUp removes from Redis what was taken, or may have been, and waits for that for a moment if the caller can.
func (c *Client) giveUp(ctx context.Context, parts []*reserved) {
	late := time.After(leaveInterval)
	var removed []<-chan struct{}
	for _, one := range parts {
		if done := c.registry.discard(&one.ho, one.took); done != nil {
			removed = append(removed, done)
		}
	}
	for _, done := range removed {
		select {
		case <-done:
		case <-late:
			return
		case <-ctx.Done():
			return
		}
	}
}
