package redisson_test

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson"
)

// look compares what the holders believe with what is in Redis at this instant.
func (j *judge) look() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lookLocked()
}

func (j *judge) lookLocked() {
	if j.w.sim == nil { // a real server can't be looked at without time passing
		return
	}
	j.lookAtLatch()
	for _, key := range slices.Sorted(maps.Keys(j.inside)) {
		if j.w.scene.anonymous && j.w.scene.taken != nil {
			j.lookForPermits(key)
			continue
		}
		for _, s := range j.inside[key] {
			for _, sec := range s.live {
				j.lookFor(sec, key)
			}
		}
	}
}

// lookFor looks for the holder of a section in Redis.
func (j *judge) lookFor(sec *section, key string) {
	switch {
	case sec.robbed > 0 && j.w.scene.majority && j.w.has(sec, key):
		sec.robbed = 0 // a server that answered late has made up for it
	case sec.robbed > 0:
		j.deaf(sec)
	case !j.w.has(sec, key) && j.undone(sec):
		j.net.Reach("undone")
		sec.robbed = j.w.sim.Back()
	case !j.w.has(sec, key):
		j.violation("%s believes in its %v hold of %s, and Redis does not have it", sec.stay.name, sec.kind, key)
	}
}

// simTold is how late a client may be told, without faults, that a lock was freed by force: it begins to listen when it has held one for
// 50ms, and then asks for what it has missed.
const simTold = 150 * time.Millisecond

// deaf is called with a section that was robbed. Without faults its client is told. With them, an owner learns of that with the next
// renewal or, if nothing gets through, when the leases are over that its holds have asked for, of which a writer's add up. One that is
// not renewed may not learn of it before.
func (j *judge) deaf(sec *section) {
	late, most := j.net.Since()-max(sec.robbed, sec.entered), simTold
	given := j.w.options.scene == "levels" // which nobody tells it
	if j.w.options.faults != "none" || given {
		most = j.w.times.watchdog + sec.stay.leases
	}
	if (sec.lease == 0 || j.w.options.faults == "none" && !given) && late > most {
		j.violation("%s has not heard for %v that its lock was freed by force", sec.stay.name, late)
	}
}

// lookForPermits counts the permits that Redis has as taken.
func (j *judge) lookForPermits(key string) {
	believed := 0
	for _, s := range j.inside[key] {
		_, _, permits := s.amounts()
		believed += permits
	}
	if taken := j.w.scene.taken(j.w, key); believed > taken {
		j.violation("%d permits of %s are believed in, and Redis has %d as taken", believed, key, taken)
	}
}

// has reports whether Redis has what the owner of a section believes in.
func (w *world) has(sec *section, key string) bool {
	switch {
	case w.sim == nil || w.scene.anonymous:
		return true
	case w.scene.majority:
		return w.hasMajority(sec)
	}
	return w.hasHolder(sec, key)
}

// hasHolder reports whether Redis has the holder of a section. What belongs to a reader may be missing for a moment as long as the
// same holder writes: that keeps others out as well, and the next update repairs it.
func (w *world) hasHolder(sec *section, key string) bool {
	id := sec.ids[key]
	switch sec.kindAt(key) {
	case lock.Permit:
		return w.hasPermit(key, id)
	case lock.Write:
		return w.hasField(key, id+":write")
	case lock.Read:
		return w.hasField(key, id+":write") || w.hasField(key, id) && w.sim.Server().Exists(fmt.Sprintf("{%s}:%s:rwlock_timeout:1", key, id))
	}
	return w.hasField(key, id)
}

func (w *world) hasField(key, field string) bool { return w.sim.Server().HGet(key, field) != "" }

// hasPermit reports whether a permit is taken, and not over.
func (w *world) hasPermit(key, id string) bool {
	end, err := w.sim.Server().ZScore("{"+key+"}:timeout", id)
	return err == nil && end > float64(w.sim.ServerTime().UnixMilli())
}

// hasMajority reports whether Redis has the hold of an owner at most servers of a RedLock.
func (w *world) hasMajority(sec *section) bool {
	h, found := sec.hold.(severalHold), 0
	ids := redisson.PartIDs(h.ctx, h.locks.(*redisson.RedLock))
	for _, key := range simServers {
		if slices.ContainsFunc(ids, func(id string) bool { return w.hasField(key, id) }) {
			found++
		}
	}
	return found > len(simServers)/2
}

// lookAtLatch notes whether the latch is open.
func (j *judge) lookAtLatch() {
	closed := j.w.sim.Server().Exists("L")
	if !closed || !j.closed {
		j.open = j.net.Since()
	}
	if j.closed && !closed {
		j.opens = j.net.Since()
	}
	j.closed = closed
}
