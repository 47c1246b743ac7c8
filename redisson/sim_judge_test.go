package redisson_test

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/lock"
)

// judge knows who is inside of what, and notes what must not be.
type judge struct {
	w   *world
	net stage

	mu         sync.Mutex
	inside     map[string][]*stay // by key, in the order in which they came
	vacant     map[string]vacancy // since when nobody is inside
	kept       map[string][]keep  // by key, by those who have left
	waiting    []*waiter
	left       time.Duration            // when a waiter last left without the lock
	robbed     map[string]time.Duration // when a lock was last freed by force
	forces     int                      // that are under way
	first      map[string]*section      // by key and holder id
	tokens     map[string]int64         // the last fencing tokens, by key
	served     []served                 // by a rate limiter, in the order of their ends
	wishes     []*wish
	passed     map[string]int           // by member of a wake list, how often others from behind were served
	silent     map[string]time.Duration // when somebody has last ended without a release, which may follow
	ids        map[string]bool          // of permits of a rate
	rates      []time.Time              // when they were given, by the server's clock
	begun      []time.Duration          // the same by that of the world
	closed     bool                     // a latch was closed at the last look
	open       time.Duration            // when it last was not, as far as is known
	opens      time.Duration            // when it was opened
	violations []string
}

func newJudge(w *world) *judge {
	return &judge{
		w: w, net: w.net, inside: map[string][]*stay{}, vacant: map[string]vacancy{}, kept: map[string][]keep{},
		robbed: map[string]time.Duration{}, tokens: map[string]int64{}, first: map[string]*section{}, silent: map[string]time.Duration{}, passed: map[string]int{}, ids: map[string]bool{},
	}
}

// enter is called with each new section.
func (j *judge) enter(sec *section) {
	j.mu.Lock()
	defer j.mu.Unlock()
	s := sec.stay
	for _, key := range s.keys {
		if first := j.first[key+sec.ids[key]]; sec.ids[key] == "" || first == nil {
			j.first[key+sec.ids[key]] = sec
		} else {
			if first.stay != s {
				j.w.net.Reach("passed on")
			}
			sec.asked = min(sec.asked, first.asked) // the holder in Redis is as old as that
		}
		if !slices.Contains(j.inside[key], s) {
			j.idle(key)
			j.inside[key] = append(j.inside[key], s)
		}
		if sec.asked <= j.robbed[key] && !j.w.has(sec, key) {
			sec.robbed = j.robbed[key] // after Redis ran its acquire, and before that was answered or the lock passed on
		}
	}
	sec.entered = j.net.Since()
	s.live = append(s.live, sec)
	s.leases += sec.lease
	j.lookLocked()
	for _, key := range s.keys {
		j.compare(s, key)
	}
	j.rooms()
	j.w.sections.Add(1)
}

// leave is called when a section has ended: by a release, or else by the end of its time.
func (j *judge) leave(sec *section, released bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	s := sec.stay
	s.live = slices.DeleteFunc(s.live, func(o *section) bool { return o == sec })
	if len(s.live) > 0 {
		return
	}
	defer j.rooms()
	for _, key := range s.keys {
		if !released {
			j.silent[key] = j.net.Since()
		}
		j.inside[key] = slices.DeleteFunc(j.inside[key], func(o *stay) bool { return o == s })
		if len(j.inside[key]) == 0 {
			j.vacant[key] = vacancy{since: j.net.Since(), released: released}
		}
	}
}

// amounts is what an owner has, as far as nobody has freed it by force: of that, the owner may not know yet.
func (s *stay) amounts() (reading, writing, permits int) {
	for _, sec := range s.live {
		switch {
		case sec.robbed > 0:
		case sec.kind == lock.Read:
			reading += sec.amount
		case sec.kind == lock.Permit:
			permits += sec.amount
		default:
			writing += sec.amount
		}
	}
	return reading, writing, permits
}

// compare looks for somebody who must not be inside together with s.
func (j *judge) compare(s *stay, key string) {
	for _, o := range j.inside[key] {
		if o != s && exclude(o, s) {
			j.unlessLate(key, []*stay{o, s}, func() bool { return !exclude(o, s) }, "two owners of %s: %s and %s", key, o.name, s.name)
		}
	}
	if permits, most := j.permits(s, key); permits > most {
		j.unlessLate(key, []*stay{s}, func() bool { now, _ := j.permits(s, key); return now <= most }, "%d permits of %s are taken, and there are %d", permits, key, most)
	}
}

// exclude reports whether two must not be inside at once.
func exclude(a, b *stay) bool {
	readsA, writesA, _ := a.amounts()
	readsB, writesB, _ := b.amounts()
	return writesA > 0 && readsB+writesB > 0 || writesB > 0 && readsA > 0
}

// permits returns how many permits are taken or kept, and how many there are.
func (j *judge) permits(s *stay, key string) (permits, most int) {
	permits, most = j.keptFrom(s, key)
	for _, o := range j.inside[key] {
		_, _, p := o.amounts()
		permits, most = permits+p, max(most, o.most(key)) // the last one has met all the others
	}
	return permits, most
}

// unlessLate notes a violation by those who are inside. In real time, one of them may only be slow to hear that its time is over, and the judge
// that somebody has freed its lock by force: soon after, one has left, or the violation is over. The time in which this process stood still does
// not count.
func (j *judge) unlessLate(key string, stays []*stay, over func() bool, format string, args ...any) {
	left := j.w.times.grace
	if left == 0 {
		j.violation(format, args...)
		return
	}
	go watch(nil, func(ran, _ time.Duration) bool {
		j.mu.Lock()
		defer j.mu.Unlock()
		if left -= ran; left > 0 || j.forces > 0 {
			return true
		}
		if !over() && !slices.ContainsFunc(stays, func(s *stay) bool { return !slices.Contains(j.inside[key], s) }) {
			j.violation(format, args...)
		}
		return false
	})
}

// force is called before a lock is freed by force where nobody sees when Redis does that, and what it returns after it.
func (j *judge) force(key string) (freed func()) {
	count := func(n int) {
		j.rob(key)
		j.mu.Lock()
		defer j.mu.Unlock()
		j.forces += n
	}
	count(1)
	return func() { count(-1) }
}

// rob is called when a ForceUnlock has taken a lock from whoever has it. A RedLock is left to who still has most of its servers.
func (j *judge) rob(key string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.w.scene.majority {
		key = "R"
	}
	j.robbed[key] = j.net.Since()
	delete(j.kept, key)
	if v, known := j.vacant[key]; known && len(j.inside[key]) == 0 { // it was kept until now
		v.since = j.robbed[key]
		j.vacant[key] = v
	}
	for _, s := range j.inside[key] {
		for _, sec := range s.live {
			if sec.robbed == 0 && (!j.w.scene.majority || !j.w.has(sec, key)) {
				j.net.Reach("robbed")
				sec.robbed = j.robbed[key]
			}
		}
	}
}

// mayBeRobbed reports whether somebody has freed a lock by force that a hold has or, of a RedLock, whether that has taken the majority from
// it.
func (j *judge) mayBeRobbed(sec *section) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	robbed := func(key string) bool { return j.robbed[key] > 0 && j.robbed[key] >= sec.asked }
	return sec.robbed > 0 || j.undone(sec) || !j.w.scene.majority && slices.ContainsFunc(sec.stay.keys, robbed)
}

// undone reports whether a failover to a replica that was behind may have undone what a section had.
func (j *judge) undone(sec *section) bool {
	return j.w.options.faults == "behind" && sec.asked <= j.w.sim.Back() && j.w.sim.Back() > 0
}

// token is called with the fencing token of each section.
func (j *judge) token(sec *section, token int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	key := sec.stay.keys[0]
	if token <= j.tokens[key] && sec.robbed == 0 && (j.w.options.faults != "behind" || j.w.sim.Back() == 0) { // after that, they are given out again
		j.violation("token %d of %s comes after token %d", token, sec.stay.name, j.tokens[key])
	}
	j.tokens[key] = max(token, j.tokens[key])
}

// served is when a rate limiter gave a permit: at some time between the start and the end of a call.
type served struct{ start, end time.Duration }

// rate checks that not more permits than there may be were given within an interval.
func (j *judge) rate(start, end time.Duration) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.w.sections.Add(1)
	j.served = append(j.served, served{start, end})
	earliest, inWindow := start, 0
	for _, o := range slices.Backward(j.served) {
		earliest = min(earliest, o.start)
		if end-earliest >= simInterval-simInterval/20 { // the server's clock may be the faster one
			break
		}
		inWindow++
	}
	if inWindow > simRate {
		j.violation("%d permits within %v, and %d may be", inWindow, simInterval, simRate)
	}
}

// opened is called when a wait for the latch has ended that began at start: the latch was open in between.
func (j *judge) opened(start time.Duration) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.w.sections.Add(1)
	if j.w.sim == nil {
		return
	}
	if j.lookAtLatch(); j.open < start {
		j.violation("a latch was closed from %v to %v, and a wait for it ended", start, j.open)
	}
	late, most := j.net.Since()-max(start, j.opens), j.idleMost(vacancy{since: j.opens, released: true}, 0)
	if late > most {
		j.violation("idle: the end of a wait for an open latch took %v, and %v may be", late, most)
	}
}

// simMostViolations is how many violations of a world are noted: each leads to more.
const simMostViolations = 10

// accuse notes a violation.
func (j *judge) accuse(format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.violation(format, args...)
}

func (j *judge) violation(format string, args ...any) {
	if len(j.violations) == simMostViolations {
		return
	}
	text := fmt.Sprintf(format, args...)
	j.violations = append(j.violations, text)
	j.net.Note("VIOLATION %s", text)
}
