package redisson_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/lock"
)

// judge knows who is inside of what, and notes what must not be.
type judge struct {
	w *world

	mu         sync.Mutex
	inside     map[string][]*stay // by key, in the order in which they came
	tokens     map[string]int64   // the last fencing tokens, by key
	served     []served           // by a rate limiter, in the order of their ends
	count      bool               // a latch was there at the last look
	open       time.Duration      // when it last was not, as far as is known
	violations []string
}

func newJudge(w *world) *judge {
	return &judge{w: w, inside: map[string][]*stay{}, tokens: map[string]int64{}}
}

// enter is called with each new section of a stay.
func (j *judge) enter(s *stay, kind lock.Kind, amount int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	s.count(kind, amount)
	for _, key := range s.keys {
		if !slices.Contains(j.inside[key], s) {
			j.inside[key] = append(j.inside[key], s)
		}
		j.compare(s, key)
	}
	j.w.sections.Add(1)
}

// leave is called when a section has ended.
func (j *judge) leave(s *stay, kind lock.Kind, amount int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	s.count(kind, -amount)
	if s.reading+s.writing+s.permits > 0 {
		return
	}
	for _, key := range s.keys {
		j.inside[key] = slices.DeleteFunc(j.inside[key], func(o *stay) bool { return o == s })
	}
}

// compare looks for somebody who must not be inside together with s.
func (j *judge) compare(s *stay, key string) {
	permits := 0
	for _, o := range j.inside[key] {
		permits += o.permits
		if o != s && (s.writing > 0 || o.writing > 0) {
			j.violation("two owners of %s: %s and %s", key, o.name, s.name)
		}
	}
	if permits > simPermits {
		j.violation("%d permits of %s are taken, and there are %d", permits, key, simPermits)
	}
}

// token is called with the fencing token of each section.
func (j *judge) token(s *stay, token int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	key := s.keys[0]
	if token <= j.tokens[key] {
		j.violation("%s has token %d after token %d", s.name, token, j.tokens[key])
	}
	j.tokens[key] = max(token, j.tokens[key])
}

// accuse notes a violation.
func (j *judge) accuse(format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.violation(format, args...)
}

func (j *judge) violation(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	j.violations = append(j.violations, text)
	j.w.net.Note("VIOLATION %s", text)
}

// look compares what the holders believe with what is in Redis at this instant.
func (j *judge) look() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.latch()
	for _, key := range slices.Sorted(maps.Keys(j.inside)) {
		stays := j.inside[key]
		if len(stays) == 0 {
			continue
		}
		if stays[0].kind == lock.Permit {
			j.lookForPermits(key, stays)
			continue
		}
		for _, c := range j.w.clients {
			own := slices.DeleteFunc(slices.Clone(stays), func(s *stay) bool { return s.o.client != c })
			j.lookForHolders(key, c.ID(), own)
		}
	}
}

// lookForPermits counts the permits that Redis has as taken.
func (j *judge) lookForPermits(key string, stays []*stay) {
	believed := 0
	for _, s := range stays {
		believed += s.permits
	}
	if taken := j.w.scene.taken(j.w, key); believed > taken {
		j.violation("%d permits of %s are believed in, and Redis has %d as taken", believed, key, taken)
	}
}

// lookForHolders looks for those holders of one client in the hash of a lock, and for the leases of those who read.
func (j *judge) lookForHolders(key, client string, stays []*stay) {
	if len(stays) == 0 {
		return
	}
	var holders, writers, readers int // in Redis
	fields, _ := j.w.net.Server().HKeys(key)
	for _, f := range fields {
		switch {
		case !strings.HasPrefix(f, client):
		case strings.HasSuffix(f, ":write"):
			writers++
		default:
			holders++
			if j.reads(key, f) {
				readers++
			}
		}
	}
	for _, s := range stays {
		switch {
		case s.kind != lock.Read && s.kind != lock.Write:
			holders--
		case s.writing > 0:
			writers--
		default:
			holders--
			readers--
		}
	}
	name := stays[len(stays)-1].name
	switch {
	case holders < 0 || writers < 0:
		j.violation("%s believes in a hold of %s that Redis does not have", name, key)
	case readers < 0 && (stays[0].kind == lock.Read || stays[0].kind == lock.Write):
		j.violation("%s believes in a hold of %s whose lease is over in Redis", name, key)
	}
}

// reads reports whether a holder has a timeout key.
func (j *judge) reads(key, holder string) bool {
	for n := range 50 {
		if j.w.net.Server().Exists(fmt.Sprintf("{%s}:%s:rwlock_timeout:%d", key, holder, n+1)) {
			return true
		}
	}
	return false
}

// served is when a rate limiter gave a permit: at some time between the start and the end of a call.
type served struct{ start, end time.Duration }

// rate checks that not more permits than there may be were given within an interval.
func (j *judge) rate(start, end time.Duration) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.served = append(j.served, served{start, end})
	earliest, inWindow := start, 0
	for _, o := range slices.Backward(j.served) {
		earliest = min(earliest, o.start)
		if end-earliest >= simInterval {
			break
		}
		inWindow++
	}
	if inWindow > simRate {
		j.violation("%d permits within %v, and %d may be", inWindow, simInterval, simRate)
	}
}

// latch notes whether the latch is open. The mutex is held.
func (j *judge) latch() {
	count := j.w.net.Server().Exists("L")
	if !count || !j.count {
		j.open = j.w.net.Since()
	}
	j.count = count
}

// opened is called when a wait for the latch has ended that began at start: it was open in between.
func (j *judge) opened(start time.Duration) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.w.sections.Add(1)
	if j.latch(); j.open < start {
		j.violation("a latch was closed from %v to %v, and a wait for it ended", start, j.open)
	}
}
