package redisson_test

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// wish is a call that waits for permits.
type wish struct {
	s    *stay
	room time.Duration // since when each level has a permit for it; negative: one has none
}

// want notes that s begins to wait for permits. The function that it returns ends that.
func (j *judge) want(s *stay) (done func()) {
	j.mu.Lock()
	defer j.mu.Unlock()
	w := &wish{s: s, room: -1}
	j.wishes = append(j.wishes, w)
	j.rooms()
	return func() {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.rooms()
		j.wishes = slices.DeleteFunc(j.wishes, func(o *wish) bool { return o == w })
	}
}

// rooms is called when something has changed. Nobody must have waited for long until then for permits that were free. It notes for whom there is room from
// now on.
func (j *judge) rooms() {
	if j.w.sim == nil {
		return
	}
	for _, w := range j.wishes {
		if w.room >= 0 {
			j.unserved(w)
		}
		switch full := slices.ContainsFunc(w.s.keys, func(key string) bool { return j.atMost(key) >= w.s.most(key) }); {
		case full:
			w.room = -1
		case w.room < 0:
			w.room = j.net.Since()
		}
	}
}

// simPrompt is how long a permit may be free that somebody was told of who stands in a wake list: the next one looks after 25ms.
const simPrompt = 20 * time.Millisecond

// simSilence is how long after an end that is not announced the others find out.
const simSilence = 3 * time.Second

// unserved looks for how long there has been room for a waiter, also by the rate.
func (j *judge) unserved(w *wish) {
	since, v := max(w.room, j.w.sim.Back()), vacancy{released: true}
	var kept time.Duration
	for _, key := range w.s.keys {
		kept = max(kept, j.keptLast(key)+simSilence)
		v.released = v.released && (j.silent[key] == 0 || j.silent[key]+simSilence < since)
	}
	if n := len(j.begun); w.s.request.Rate.Permits > 0 && n >= simRate {
		since = max(since, j.begun[n-simRate]+simInterval+simInterval/20)
	}
	if j.left+simInterval > since && w.s.request.Rate.Permits > 0 {
		since = max(since, j.left+simInterval) // what it has taken is not there
	}
	v.since = since
	idle, most := j.net.Since()-since, j.idleMost(v, kept)
	if most == 100*time.Millisecond && w.s.request.Rate.Permits == 0 {
		most = simPrompt
	}
	if most > time.Second || !j.w.uniform() {
		most = max(most, simSilence) // who stands in front may have no room, and those behind look by themselves
	}
	if idle > most {
		j.violation("idle: %v was not served for %v, and %v may be", w.s, idle, most)
	}
}

// atMost is how many permits of a key may be taken.
func (j *judge) atMost(key string) (n int) {
	for _, s := range j.inside[key] {
		for _, sec := range s.live {
			n += sec.amount
		}
	}
	for _, k := range j.kept[key] {
		if k.latest > j.net.Since() {
			n++
		}
	}
	return n
}

// simPassed is how often one may be passed over who stands in a wake list: somebody who has just come may take what was meant for another.
const simPassed = 3

// passedOver is called with each command by which one of a wake list got a permit. Nobody must stand before it again and again for whom no permit is
// left.
func (j *judge) passedOver(args []string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	n, last := atoi(args[2]), len(args)-1
	key, taken, since := args[2+n], args[3+atoi(args[last-6])-1], args[last-4]
	limit := simPermits
	for _, l := range simLevels {
		if taken == "{"+l.Key+"}:timeout" {
			limit = l.Limit
		}
	}
	came, _ := strconv.ParseFloat(since, 64)
	if !strings.HasPrefix(key, "latchkey_wake:") || came == 0 {
		return
	}
	ids, _ := j.w.sim.Server().ZMembers(taken)
	members, _ := j.w.sim.Server().ZMembers(key) // in the order of their scores
	for i, member := range slices.DeleteFunc(members, func(m string) bool { return m == "" || m == "-" }) {
		if score, _ := j.w.sim.Server().ZScore(key, member); score < came && i >= limit-len(ids) {
			if j.passed[key+member]++; j.passed[key+member] > simPassed {
				j.violation("starved: %s of %s was passed over %d times", member, key, j.passed[key+member])
			}
		}
	}
}
