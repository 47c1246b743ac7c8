package play

import (
	"fmt"
	"time"
)

const (
	// short is a lease that is over soon, and long one that outlasts each play.
	short, long = 100 * time.Millisecond, time.Minute
	// slow is a lease that even a busy machine renews in time.
	slow = 2 * time.Second
	// patience is how long a holder has to notice a loss, once it runs.
	patience = 2 * time.Second
)

// The plays, in the order of the steps that fail in them.
var (
	TwoMachines = Play{"two processes want one lock", func(s *stage) string {
		ann, bob := s.actor("ann", long), s.actor("bob", long)
		ann.awaitLock()
		bob.tryLock()
		return s.together(ann, bob)
	}}

	KilledHolder = Play{"a holder is killed", func(s *stage) string {
		ann, bob := s.actor("ann", short), s.actor("bob", long)
		ann.awaitLock()
		ann.kill()
		return s.lockedOut(bob)
	}}

	KilledBetween = Play{"a process is killed as soon as Redis has its lock", func(s *stage) string {
		ann, bob := s.actor("ann", short), s.actor("bob", long)
		ann.holdAt(keyMade)
		ann.kill()
		return s.lockedOut(bob)
	}}

	FastClock = Play{"a clock is an hour fast", func(s *stage) string {
		ann, bob := s.actor("ann", long), s.actorAhead("bob", long, time.Hour)
		ann.awaitLock()
		bob.tryLock()
		return s.together(ann, bob)
	}}

	LateUnlock = Play{"a holder unlocks after its lease", func(s *stage) string {
		ann, bob, carl := s.actor("ann", short), s.actor("bob", long), s.actor("carl", long)
		ann.awaitLock()
		ann.stop()
		bob.awaitLock()
		ann.resume()
		ann.unlock()
		carl.tryLock()
		return s.together(bob, carl)
	}}

	StoppedUnlock = Play{"the lease ends in the middle of unlock", func(s *stage) string {
		bob, carl := s.actor("bob", long), s.actor("carl", long)
		ann := s.holdInTime("ann", beforeDelete)
		ann.stop()
		bob.awaitLock()
		ann.resume()
		carl.tryLock()
		return s.together(bob, carl)
	}}

	SlowWork = Play{"the work takes longer than the lease", func(s *stage) string {
		ann, bob := s.actor("ann", slow), s.actor("bob", long)
		ann.awaitLock()
		bob.getsWithin(slow * 5 / 4)
		return s.together(ann, bob)
	}}

	StoppedHolder = Play{"a holder is stopped for longer than its lease", func(s *stage) string {
		ann, bob := s.actor("ann", short), s.actor("bob", long)
		ann.awaitLock()
		ann.stop()
		bob.awaitLock()
		ann.resume()
		ann.noticesWithin(patience)
		return s.together(ann, bob)
	}}

	ForgetfulServer = Play{"a server is killed and starts again", func(s *stage) string {
		ann, bob := s.actor("ann", long), s.actor("bob", long)
		ann.awaitLock()
		s.restartServer()
		bob.tryLock()
		return s.together(ann, bob)
	}}

	StoppedWriter = Play{"a holder is stopped between its last check and its write", func(s *stage) string {
		bob := s.actor("bob", long)
		ann := s.holdInTime("ann", beforeWrite)
		ann.stop()
		bob.awaitLock()
		bob.read()
		bob.write()
		bob.unlock()
		if !ann.resume() {
			ann.addAgain()
		}
		return s.lostUpdate(2)
	}}

	WriterAfterReader = Play{"a holder is stopped before its write, and the next one has read", func(s *stage) string {
		bob := s.actor("bob", long)
		ann := s.holdInTime("ann", beforeWrite)
		ann.stop()
		bob.awaitLock()
		bob.read()
		late := ann.resume()
		bob.write()
		bob.unlock()
		if !late {
			ann.addAgain()
		}
		return s.lostUpdate(2)
	}}
)

// addAgain does the work once more, under a lock that was not lost.
func (a *actor) addAgain() {
	a.unlock()
	a.awaitLock()
	a.read()
	a.write()
}

// lockedOut waits for ten leases of a dead process, and says whether its lock is still there.
func (s *stage) lockedOut(a *actor) (hole string) {
	if a.getsWithin(10 * short) {
		return ""
	}
	if ttl := s.lockTTL(); ttl >= 0 {
		return fmt.Sprintf("nobody can have the lock for another %v", ttl)
	}
	return "nobody can have the lock, and Redis keeps it for ever"
}

// together says who of two believe that they hold the lock.
func (s *stage) together(a, b *actor) (hole string) {
	if !a.inside() || !b.inside() {
		return ""
	}
	return fmt.Sprintf("%s and %s hold the lock at once", a.name, b.name)
}

// lostUpdate says whether each process got the answer that its update is in the store, and all
// are.
func (s *stage) lostUpdate(updates int64) (hole string) {
	balance := s.balance()
	if s.added == updates && balance == updates {
		return ""
	}
	return fmt.Sprintf("%d were added, and the store has %d", s.added, balance)
}
