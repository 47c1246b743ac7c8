package worker

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/latchkey-go/latchkey/faults/history"
	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson"
)

// caller is a goroutine that plays random programs.
type caller struct {
	*round
	id       int
	programs int64
	owner    string
	rng      *rand.Rand
	counted  map[string]bool // latches
}

// attempt is how a caller takes a lock.
type attempt struct {
	wait, lease time.Duration // a negative wait is Lock
	deadline    int64         // of the context
}

// target is a lock, and who wants it.
type target struct {
	sort
	keys []string
	lock locker
}

// stay is what came of an attempt.
type stay struct {
	target
	call *history.Call
	held context.Context
	good bool // its section has begun and goes on
	in   bool // the board counts it
}

// play is what the caller does in a round: programs until all is healed, and then one of each kind, in which it must get in.
func (c *caller) play() {
	for !c.isHealed() {
		c.begin()
		c.program()
	}
	for _, s := range c.sorts {
		if s.play != nil {
			c.finish(s)
			continue
		}
		for c.begin(); !c.section(c.take(context.Background(), c.target(s), attempt{wait: -1})); c.begin() {
			time.Sleep(time.Duration(5+c.rng.IntN(30)) * time.Millisecond)
		}
	}
}

// finish plays a kind that is not held for the last time, with each of its names.
func (c *caller) finish(s sort) {
	for i := range c.order.Keys {
		c.begin()
		s.play(c, target{sort: s, keys: []string{c.name(s.names, i)}}, true)
	}
}

func (c *caller) isHealed() bool {
	select {
	case <-c.healed:
		return true
	default:
		return false
	}
}

// begin starts a program, which has an owner of its own.
func (c *caller) begin() {
	c.programs++
	c.owner = c.w.owner(c.id, c.programs+int64(c.order.Round)*1_000_000)
}

func (c *caller) pick() target { return c.target(c.sorts[c.rng.IntN(len(c.sorts))]) }

func (c *caller) target(s sort) target {
	first := c.rng.IntN(c.order.Keys)
	keys := []string{c.name(s.names, first)}
	n := s.keys
	if s.counts() && n > 1 { // of levels, it takes some
		n = 1 + c.rng.IntN(n)
	}
	for i := 1; i < n; i++ {
		keys = append(keys, c.name(s.names, (first+i)%c.order.Keys))
	}
	t := target{sort: s, keys: keys}
	if s.play == nil {
		t.lock = s.open(c.w, c.round, keys)
	}
	if c.w.Broken {
		t.lock = broken{t.lock, func() bool { return c.rng.IntN(15) == 0 }}
	}
	return t
}

// counts reports whether it is of permits.
func (s sort) counts() bool { return s.kind == "permit" || s.kind == "semaphore" }

// program is one of some that differ in what they nest, and in the order of the releases.
func (c *caller) program() {
	ctx, a, cancel := c.attempt()
	defer cancel()
	t := c.pick()
	if t.play != nil {
		t.play(c, t, false)
		return
	}
	first := c.take(ctx, t, a)
	if first == nil {
		return
	}
	switch c.rng.IntN(8) {
	case 0:
		c.nested(first, c.again(first.target))
	case 1:
		c.nested(first, c.pick())
	default:
		c.section(first)
	}
}

// nested takes a second lock under the first, and gives both back in any order.
func (c *caller) nested(first *stay, inner target) {
	c.enter(first)
	if inner.lock == nil || c.w.Broken || inner.counts() && slices.ContainsFunc(inner.keys, func(key string) bool { return slices.Contains(first.keys, key) }) { // that would not take these
		c.leave(first)
		return
	}
	under := first.held
	outerFirst := c.rng.IntN(2) == 0
	if outerFirst {
		under = context.WithoutCancel(under)
	}
	second := c.take(under, inner, attempt{wait: time.Duration(c.rng.IntN(100)) * time.Millisecond, lease: c.lease()})
	if second == nil || !outerFirst {
		c.section(second)
		c.leave(first)
		return
	}
	c.enter(second)
	c.leave(first)
	c.work(second)
	c.leave(second)
}

// again is the same lock once more, or one of its kind that may be taken under it.
func (c *caller) again(t target) target {
	if len(t.inner) == 0 {
		return target{}
	}
	s := c.w.known[t.inner[c.rng.IntN(len(t.inner))]]
	return target{sort: s, keys: t.keys, lock: s.open(c.w, c.round, t.keys)}
}

// attempt is a random way to ask for a lock.
func (c *caller) attempt() (context.Context, attempt, context.CancelFunc) {
	ctx, cancel := context.Background(), context.CancelFunc(func() {})
	switch n := c.rng.IntN(20); {
	case n < 9:
		return ctx, attempt{wait: -1}, cancel
	case n < 12:
		ctx, cancel = context.WithTimeout(ctx, time.Duration(c.rng.IntN(300))*time.Millisecond)
		return ctx, attempt{wait: -1, deadline: history.Until(ctx)}, cancel
	case n < 14:
		d := time.Duration(c.rng.IntN(100)) * time.Millisecond
		ctx, cancel = context.WithCancel(ctx)
		stop := time.AfterFunc(d, cancel)
		return ctx, attempt{wait: -1, deadline: history.Now() + int64(d)}, func() { stop.Stop(); cancel() }
	case n < 16:
		return ctx, attempt{lease: c.lease()}, cancel
	}
	return ctx, attempt{wait: time.Duration(c.rng.IntN(400)) * time.Millisecond, lease: c.lease()}, cancel
}

// lease is none, or one about as long as that of the watchdog.
func (c *caller) lease() time.Duration {
	if c.rng.IntN(2) == 0 {
		return 0
	}
	return c.w.Watchdog*3/4 + time.Duration(c.rng.Int64N(int64(c.w.Watchdog)))
}

// take asks for a lock. It returns nil if that did not get it.
func (c *caller) take(ctx context.Context, t target, a attempt) *stay {
	st := &stay{target: t, call: c.ask(t, a)}
	c.w.place.Waiting.Add(1)
	defer c.w.place.Waiting.Add(-1)
	var err error
	ok := true
	if a.wait < 0 {
		st.held, err = t.lock.Lock(ctx)
	} else {
		st.held, ok, err = t.lock.TryLock(ctx, a.wait, a.lease)
	}
	switch {
	case err != nil:
		c.failed(ctx, st.call, err)
	case !ok:
		st.call.Fail(history.Busy, lock.ErrBusy)
	default:
		return st
	}
	return nil
}

// failed notes why a call has nothing.
func (c *caller) failed(ctx context.Context, call *history.Call, err error) {
	if ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
		call.Fail(history.Busy, err)
		return
	}
	call.Fail(history.Failed, err)
	time.Sleep(time.Duration(2+c.rng.IntN(15)) * time.Millisecond)
}

// ask begins a call in the history.
func (c *caller) ask(t target, a attempt) *history.Call {
	e := history.Event{Kind: t.kind, Keys: t.keys, Worker: c.id, Owner: c.owner, Wait: a.wait, Lease: a.lease, Deadline: a.deadline}
	if a.lease == 0 {
		e.Lease = c.w.Watchdog
	}
	if t.counts() {
		e.Limit = c.limit()
	}
	switch t.names {
	case "sem":
		e.Lease = 0
	case "psem":
		e.Lease = PermitLease
	}
	e.Servers = c.servers()
	return c.w.log.Ask(e)
}

func (c *caller) servers() (names []string) {
	for _, s := range c.w.Servers {
		names = append(names, s.Name)
	}
	return names
}

// section enters, works, leaves, and gives the lock back. It reports whether it was inside.
func (c *caller) section(st *stay) bool {
	if st == nil {
		return false
	}
	c.enter(st)
	c.work(st)
	c.leave(st)
	return st.in
}

func (c *caller) enter(st *stay) {
	if st.good = st.call.Enter(st.held, token(st)); st.good {
		st.in = true
		c.w.place.Inside.Add(1)
		c.w.place.Entered.Add(1)
	}
}

// work takes its time, and looks at its context.
func (c *caller) work(st *stay) {
	var d time.Duration
	switch c.rng.IntN(5) {
	case 0, 1:
		d = time.Duration(c.rng.IntN(2000)) * time.Microsecond
	case 2:
		d = time.Duration(2000+c.rng.IntN(4000)) * time.Microsecond
	}
	for end := time.Now().Add(d); st.good && time.Now().Before(end); {
		time.Sleep(min(time.Until(end), 2*time.Millisecond))
		st.good = st.call.Look(st.held)
	}
}

// leave ends a section, if it goes on, and gives the lock back.
func (c *caller) leave(st *stay) {
	c.exit(st)
	err := st.lock.Unlock(st.held)
	st.call.Release(err, errors.Is(err, lock.ErrLost))
}

// exit ends a section, if it goes on.
func (c *caller) exit(st *stay) {
	if st.good && st.call.Look(st.held) {
		st.call.Exit()
	}
	if st.in {
		c.w.place.Inside.Add(-1)
	}
}

// token is that of a fenced lock, or of a lead.
func token(st *stay) int64 {
	if n, ok := guard.Token(st.held); ok {
		return n
	}
	if l, ok := st.lock.(*redisson.FencedLock); ok {
		n, _ := l.Token(st.held)
		return n
	}
	return 0
}
