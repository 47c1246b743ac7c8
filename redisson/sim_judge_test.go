package redisson_test

import (
	"fmt"
	"strings"
	"sync"

	"github.com/latchkey-go/latchkey/internal/sim"
	"github.com/latchkey-go/latchkey/lock"
)

// judge knows who is inside of which section, and notes what must not be.
type judge struct {
	net *sim.Network

	mu         sync.Mutex
	inside     map[*stay]bool
	violations []string
}

func newJudge(net *sim.Network) *judge { return &judge{net: net, inside: map[*stay]bool{}} }

// enter is called with each new section of a stay.
func (j *judge) enter(s *stay, kind lock.Kind, limit int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	s.count(kind, 1)
	j.inside[s] = true
	j.check(s, limit)
}

// leave is called when a section has ended.
func (j *judge) leave(s *stay, kind lock.Kind) {
	j.mu.Lock()
	defer j.mu.Unlock()
	s.count(kind, -1)
	if s.readers+s.writers+s.others == 0 {
		delete(j.inside, s)
	}
}

// check compares s with all others who are inside.
func (j *judge) check(s *stay, limit int) {
	others, writers := 0, 0
	for o := range j.inside {
		if o != s {
			others++
			writers += min(o.others+o.writers, 1)
		}
	}
	switch {
	case limit > 0:
		if others >= limit {
			j.violation("%s is inside with %d others, and %d may be", s.name, others, limit)
		}
	case s.others+s.writers > 0 && others > 0, writers > 0:
		j.violation("two owners: %s with %d others, of these %d exclusively", s.name, others, writers)
	}
}

// accuse notes a violation that a test has found by itself.
func (j *judge) accuse(format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.violation(format, args...)
}

func (j *judge) violation(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	j.violations = append(j.violations, text)
	j.net.Note("VIOLATION %s", text)
}

// looks compares what the holders believe with what is in Redis. No time passes between the two.
func (j *judge) look() {
	j.mu.Lock()
	defer j.mu.Unlock()
	held := map[string][]*stay{} // by client
	for s := range j.inside {
		held[s.o.client.ID()] = append(held[s.o.client.ID()], s)
	}
	for id, stays := range held {
		j.compare(id, stays)
	}
}

// compare looks for the holders of one client in Redis.
func (j *judge) compare(id string, stays []*stay) {
	fields, _ := j.net.Server().HKeys("L")
	readers, reading, others := 0, 0, 0
	for _, f := range fields {
		switch {
		case !strings.HasPrefix(f, id):
		case strings.HasSuffix(f, ":write"):
			others++
		default:
			readers++
			if j.reads(f) {
				reading++
			}
		}
	}
	wantReaders, wantWriters, wantOthers := 0, 0, 0
	for _, s := range stays {
		switch {
		case s.kind == lock.Permit:
		case s.writers > 0:
			wantWriters++
		case s.readers > 0:
			wantReaders++
		default:
			wantOthers++
		}
	}
	switch {
	case wantOthers > readers, wantWriters > others, wantReaders > readers:
		j.violation("%s believes longer than Redis", stays[0].name)
	case wantReaders > reading:
		j.violation("%s believes longer than its timeout keys", stays[0].name)
	}
}

// reads reports whether a holder has a timeout key.
func (j *judge) reads(holder string) bool {
	for n := range 30 {
		if j.net.Server().Exists(fmt.Sprintf("{L}:%s:rwlock_timeout:%d", holder, n+1)) {
			return true
		}
	}
	return false
}
