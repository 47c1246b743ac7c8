package redisson_test

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson"
)

// simLevels are the keys of the scene levels, with their usual limits.
var simLevels = []lock.Level{{Key: "A", Limit: 1}, {Key: "B", Limit: 2}, {Key: "C", Limit: 3}}

// drawLevels returns one to three levels in any order, of which the first is often the largest alone. In every second world, some limits are
// one more than usual.
func (o *owner) drawLevels() []lock.Level {
	all := slices.Clone(simLevels)
	o.rand.Shuffle(len(all), func(i, k int) { all[i], all[k] = all[k], all[i] })
	n, alone := 1+o.rand.IntN(len(all)), o.rand.IntN(3) == 0
	if alone && o.w.uniform() {
		return simLevels[2:]
	}
	for i := range all {
		if more := o.rand.IntN(4) == 0; more && !o.w.uniform() {
			all[i].Limit++
		}
	}
	return all[:n]
}

// uniform reports whether all calls name the same limits. Then who waits is told of what is free for it, as what is free for one is for all.
func (w *world) uniform() bool { return w.options.scene != "levels" || w.options.seed%2 == 0 }

// ofLevels asks for a permit of these levels.
func ofLevels(levels []lock.Level) lock.Request {
	return lock.Request{Key: levels[0].Key, Limit: levels[0].Limit, Levels: levels[1:]}
}

// bounded is a stay with permits of these levels, and whatever else r says.
func (o *owner) bounded(levels []lock.Level, r lock.Request) *stay {
	s := o.newStay(lock.Permit)
	s.request, s.limits = r, map[string]int{}
	for _, l := range levels {
		s.keys, s.limits[l.Key] = append(s.keys, l.Key), l.Limit
	}
	return s
}

// most is how many permits of a key there may be, as the owner says.
func (s *stay) most(key string) int {
	if n, ok := s.limits[key]; ok {
		return n
	}
	return simPermits
}

// stayAtLevels is stay with a permit of several levels. Now and then, somebody gives back a level of somebody else.
func (o *owner) stayAtLevels() bool {
	if o.w.sim != nil && !o.final && o.rand.IntN(20) == 0 {
		o.giveAway()
	}
	levels := o.drawLevels()
	s := o.bounded(levels, ofLevels(levels))
	wait, ctx, cancel := o.patience()
	defer cancel()
	if !s.acquire(ctx, s.kind, wait) {
		return false
	}
	s.work(s.nestLevels, s.leaveOrDie)
	return true
}

// nestLevels takes levels below a hold. Those of the hold are not taken again.
func (s *stay) nestLevels(under *section) {
	o, ctx := s.o, under.hold.Context()
	levels := o.drawLevels()
	wanted := slices.DeleteFunc(slices.Clone(levels), func(l lock.Level) bool { return slices.Contains(s.keys, l.Key) })
	in := o.bounded(wanted, ofLevels(levels))
	in.under = under
	if ctx.Err() != nil || len(s.sections) == 0 || o.final {
		return
	}
	switch sec := in.ask(o, ctx, lock.Permit, o.upTo(o.w.times.timeout)); {
	case sec != nil && len(wanted) < len(levels):
		o.w.net.Reach("a level of an outer hold")
		fallthrough
	case sec != nil:
		in.sections = []*section{sec}
		in.pause()
		sec.stop()
		sec.end(true)
		o.w.judge.lost(sec, o.call("releases levels", context.Background(), o.w.times.timeout, func() error { return sec.hold.Release(context.Background()) }))
	case len(wanted) == 0 && o.w.options.faults == "none" && ctx.Err() == nil && !o.w.judge.mayBeRobbed(under):
		o.w.judge.accuse("%s did not get what it holds", s.name)
	}
}

// leaveOrDie is leave. In every second world it often waits for an instant at which others leave, too. An owner whose lease is not renewed may also
// die: nobody hears of it any more, until its lease is over.
func (s *stay) leaveOrDie(sec *section) {
	o := s.o
	together, dies := o.rand.IntN(3) > 0, o.rand.IntN(6) == 0 && sec.lease > 0 && !o.final
	if together && o.w.uniform() {
		const tick = 500 * time.Millisecond
		time.Sleep(tick - o.w.net.Since()%tick)
	}
	if dies {
		<-sec.hold.Context().Done()
		cause := context.Cause(sec.hold.Context())
		dies = errors.Is(cause, lock.ErrLost) && !errors.Is(cause, redisson.ErrGone) // or else Redis has what is left for longer
	}
	if !dies {
		s.leave(sec)
		return
	}
	o.w.net.Reach("died")
	sec.stop()
	sec.end(false)
	s.sections = nil
}

// giveAway gives a level of somebody back, by its id, as Redisson may.
func (o *owner) giveAway() {
	key := simLevels[o.rand.IntN(len(simLevels))].Key
	ids, _ := o.w.sim.Server().ZMembers("{" + key + "}:timeout")
	if len(ids) == 0 {
		return
	}
	id := hex.EncodeToString([]byte(ids[o.rand.IntN(len(ids))]))
	_ = o.call("gives a level away", context.Background(), o.w.times.timeout, func() error {
		err := o.client.PermitExpirableSemaphore(key).Release(context.Background(), id)
		if err != nil { // it may be free by now
			o.w.net.Note("not given away: %v", err)
		}
		return nil
	})
}

// gaveAway is called when a level of somebody was given back.
func (j *judge) gaveAway(key, id string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.robbed[key], j.silent[key] = j.net.Since(), j.net.Since()
	for _, s := range j.inside[key] {
		for _, sec := range s.live {
			if sec.ids[key] == id && sec.robbed == 0 {
				j.net.Reach("level given away")
				sec.robbed = j.robbed[key]
				return
			}
		}
	}
	delete(j.kept, key) // it may be that of an heir
}

// begin takes a permit of a rate, which is all, or also one of a limit.
func (o *owner) begin() bool {
	levels := []lock.Level{{Key: "L", Limit: simPermits}}
	if o.rand.IntN(2) == 0 {
		levels = nil
	}
	r := lock.Request{Key: "L", Rate: lock.Rate{Permits: simRate, Interval: simInterval}}
	if levels != nil {
		r.Limit = simPermits
	}
	s := o.bounded(levels, r)
	s.pace = min(s.pace, simInterval/2)
	wait, ctx, cancel := o.patience()
	defer cancel()
	start := o.w.net.Since()
	if !s.acquire(ctx, s.kind, wait) {
		return false
	}
	if o.w.sim == nil {
		o.w.judge.rate(start, o.w.net.Since())
	}
	s.work(func(*section) { s.pause() }, s.leave)
	return true
}

// began is called with the id of each permit of a rate that Redis says it has given: more than once, if an answer was lost. By the server's clock, no
// interval may see more than the rate.
func (j *judge) began(id string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.ids[id] {
		return
	}
	j.ids[id] = true
	j.rates, j.begun = append(j.rates, j.w.sim.ServerTime()), append(j.begun, j.net.Since())
	if i := len(j.rates) - 1 - simRate; i >= 0 {
		if within := j.rates[len(j.rates)-1].Sub(j.rates[i]); within < simInterval-time.Millisecond {
			j.violation("%d permits within %v, and %d may be", simRate+1, within, simRate)
		}
	}
	j.rooms()
}

// String is what a violation shows.
func (s *stay) String() string { return fmt.Sprintf("%s with %v", s.name, s.limits) }
