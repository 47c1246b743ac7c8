package redisson_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/latchkey-go/latchkey/lock"
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
		stays := slices.DeleteFunc(slices.Clone(j.inside[key]), j.excuse)
		if len(stays) > 0 && stays[0].kind == lock.Permit {
			j.lookForPermits(key, stays)
			continue
		}
		for _, c := range j.w.clients {
			j.lookForHolders(key, c.ID(), slices.DeleteFunc(slices.Clone(stays), func(s *stay) bool { return s.o.client != c }))
		}
	}
}

// excuse reports whether a stay need not be looked for: its lock was freed by force. If it is renewed, its owner learns of that
// when the lease is over that was last confirmed.
func (j *judge) excuse(s *stay) bool {
	if s.robbed == 0 {
		return false
	}
	if late := j.net.Since() - s.robbed; s.renewed > 0 && late > j.w.times.watchdog {
		j.violation("%s has not heard for %v that its lock was freed by force", s.name, late)
	}
	return true
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

// lookForHolders looks for the holders of one client in the hash of a lock, and for the leases of those who read.
func (j *judge) lookForHolders(key, client string, stays []*stay) {
	if len(stays) == 0 {
		return
	}
	holders, writers, readers := j.holders(key, client)
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
	lacking := holders < 0 || writers < 0 || readers < 0 && (stays[0].kind == lock.Read || stays[0].kind == lock.Write)
	if s := j.entering; lacking && s != nil && s.o.client.ID() == client && s.asked <= j.robbed[key] {
		s.robbed = j.robbed[key] // after Redis ran its acquire, and before that was answered
		return
	}
	switch {
	case holders < 0 || writers < 0:
		j.violation("%s believes in a hold of %s that Redis does not have", name, key)
	case lacking:
		j.violation("%s believes in a hold of %s whose lease is over in Redis", name, key)
	}
}

// holders counts what Redis has of a client: all fields but those of writers, these, and readers with a lease.
func (j *judge) holders(key, client string) (holders, writers, readers int) {
	fields, _ := j.w.sim.Server().HKeys(key)
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
	return holders, writers, readers
}

// reads reports whether a holder has a timeout key.
func (j *judge) reads(key, holder string) bool {
	prefix := fmt.Sprintf("{%s}:%s:rwlock_timeout:", key, holder)
	return slices.ContainsFunc(j.w.sim.Server().Keys(), func(k string) bool { return strings.HasPrefix(k, prefix) })
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
