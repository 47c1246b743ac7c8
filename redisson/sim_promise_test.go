package redisson_test

import (
	"errors"
	"slices"
	"time"

	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson"
)

// keep is a lock that an owner has left in such a way that nobody else gets it for a while.
type keep struct {
	by            *stay
	kind          lock.Kind
	from          time.Duration // when that was asked for
	until, latest time.Duration // it is over
}

// keep is called when somebody has left a lock in that way, or has tried to.
func (j *judge) keep(sec *section, from, kept time.Duration, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	defer j.rooms()
	sec.stay.leases += kept
	for _, key := range sec.stay.keys {
		j.keepOne(sec, key, from, kept, err)
	}
}

func (j *judge) keepOne(sec *section, key string, from, kept time.Duration, err error) {
	k := keep{by: sec.stay, kind: sec.kind, from: from, latest: j.net.Since() + kept + kept/49}
	switch {
	case err == nil && sec.robbed == 0 && j.robbed[key] < from && j.w.options.faults != "behind":
		j.net.Reach("kept")
		k.until = from + kept - kept/50 - time.Millisecond // the server's clock may be the faster one
	case !errors.Is(err, lock.ErrLost):
		k.latest = j.net.Since() + liveness // it is not known when Redis will do it
	}
	j.kept[key] = append(j.kept[key], k)
}

// keptFrom finds a lock that somebody else keeps from s, and returns the number of permits that are kept, and how many
// there may be.
func (j *judge) keptFrom(s *stay, key string) (permits, most int) {
	j.kept[key] = slices.DeleteFunc(j.kept[key], func(k keep) bool { return k.latest < j.net.Since()-liveness })
	reading, writing, _ := s.amounts()
	for _, k := range j.kept[key] {
		left := k.until - j.net.Since()
		switch {
		case left <= 0:
		case k.kind == lock.Permit:
			permits, most = permits+1, max(most, k.by.most(key))
		case k.by != s && (writing > 0 || reading > 0 && k.kind != lock.Read):
			freed := func() bool { return j.robbed[key] >= k.from }
			j.unlessLate(key, []*stay{s}, freed, "%s got %s, which %s keeps for another %v", s.name, key, k.by.name, left)
		}
	}
	return permits, most
}

// keptLast is until when a lock may have been kept.
func (j *judge) keptLast(key string) (latest time.Duration) {
	for _, k := range j.kept[key] {
		latest = max(latest, k.latest)
	}
	return latest
}

// prolong is called when a hold has a new lease.
func (j *judge) prolong(sec *section, lease time.Duration) {
	j.mu.Lock()
	defer j.mu.Unlock()
	sec.stay.leases += lease
}

// lost is called with the error of a release. A hold is lost if somebody has freed the lock by force, if its time is over, and
// if it was not confirmed in time.
func (j *judge) lost(sec *section, err error) {
	lost, ok := errors.AsType[*lock.LostError](err)
	if !ok {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	ended := sec.entered + lost.Held + sec.lease/100 + 2*time.Millisecond // or sooner; a RedLock gives away as much for drift
	robbed := j.undone(sec) || j.w.sim == nil
	for s := sec; s != nil; s = s.stay.under { // what others around it have, it has, too, also while it is given back
		robbed = robbed || s.robbed > 0 || slices.ContainsFunc(s.stay.keys, func(key string) bool { return j.robbed[key] >= sec.entered })
	}
	switch {
	case robbed:
	case errors.Is(err, redisson.ErrGone), errors.Is(err, redisson.ErrForced):
		j.violation("%s was notified that somebody has removed its lock, and nobody has", sec.stay.name)
	case j.w.options.faults == "none" && (sec.lease == 0 || ended < sec.lasts):
		j.violation("%s was lost early, after %v: %v", sec.stay.name, lost.Held, err)
	}
}
