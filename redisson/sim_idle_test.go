package redisson_test

import (
	"slices"
	"time"
)

// vacancy is since when nobody is inside of a lock, and how the last one left.
type vacancy struct {
	since    time.Duration
	released bool // and not lost
}

// waiter is a call that waits to get inside.
type waiter struct {
	keys  []string
	since time.Duration
}

// await notes that somebody begins to wait. The function that it returns ends that; its argument says whether it was in vain.
func (j *judge) await(keys []string) (done func(vain bool)) {
	j.mu.Lock()
	defer j.mu.Unlock()
	w := &waiter{keys: keys, since: j.net.Since()}
	j.waiting = append(j.waiting, w)
	return func(vain bool) {
		j.mu.Lock()
		defer j.mu.Unlock()
		if vain {
			j.left = j.net.Since()
		}
		j.waiting = slices.DeleteFunc(j.waiting, func(o *waiter) bool { return o == w })
	}
}

// idle is called when somebody enters a lock that nobody was inside of. It must not have been so for long while somebody was
// waiting for it.
func (j *judge) idle(key string) {
	v, known := j.vacant[key]
	if !known || len(j.inside[key]) > 0 || j.w.sim == nil || j.w.scene.partly {
		return
	}
	from := j.net.Since()
	for _, w := range j.waiting {
		if len(w.keys) == 1 && w.keys[0] == key {
			from = min(from, w.since)
		}
	}
	kept := j.keptLast(key)
	idle := j.net.Since() - max(from, v.since, kept, j.w.sim.Back())
	if most := j.idleMost(v, kept); idle > most {
		j.violation("idle: nobody got %s for %v while somebody was waiting, and %v may be", key, idle, most)
	}
}

// idleMost is how long a lock may be left to nobody. Without faults a release is heard at once, unless another caller has left
// since: what it asked may overtake what undoes it. The end of a lock that was kept is not announced either. A lease that the holder takes for over is over in Redis a margin later, and
// the head of a fair queue may count as dead when its turn comes.
func (j *judge) idleMost(v vacancy, kept time.Duration) time.Duration {
	o, slow := j.w.options, time.Duration(0)
	if o.ctx == "slow" {
		slow = simSlow * simTimeout
	}
	if o.scene == "fair" { // waiters that died have a turn, too
		slow += 2 * j.w.times.fairWait
	}
	switch {
	case o.faults == "none" && v.released && j.left < v.since && kept < v.since && o.scene != "fair":
		return 100 * time.Millisecond
	case o.faults == "back": // no pod dies, so nobody waits for a patience
		return j.w.times.fairWait
	case o.faults == "none":
		return 2 * time.Second
	case o.faults == "lossy":
		return 6*time.Second + slow
	case o.faults == "all":
		return 15*time.Second + slow
	}
	return liveness
}
