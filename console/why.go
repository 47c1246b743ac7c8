package console

import (
	"fmt"
	"time"

	"github.com/latchkey-go/latchkey/redisson"
)

// why is the state of a lock in words: the answer to "why is this locked?".
func why(s *lockState) string {
	o := &s.object
	switch {
	case s.read.IsZero():
		return "Nothing is known of it yet."
	case o.Type == redisson.TypeNone && o.Listeners > 0:
		return "Nobody holds it, and somebody is about to take it."
	case o.Type == redisson.TypeNone:
		return "Nobody holds it: there is no such key in Redis."
	case o.Type == redisson.TypeOther:
		return "There is such a key in Redis, but it is no lock. Whoever wants to lock it is refused."
	case o.Type == redisson.TypeRateLimiter:
		return "It is a rate limiter. Nobody holds it."
	case o.Type == redisson.TypeCountDownLatch:
		return fmt.Sprintf("It is a latch that opens when it has been counted down %d more %s.", o.Permits, plural(o.Permits, "time", "times"))
	case o.Type == redisson.TypeSemaphore:
		return fmt.Sprintf("It is a semaphore with %d free %s. Redis does not know who has the others.", o.Permits, plural(o.Permits, "permit", "permits"))
	case o.Type == redisson.TypeExpirableSemaphore:
		return fmt.Sprintf("It is a semaphore: %d %s taken, and %d free.", o.HolderCount, plural(o.HolderCount, "permit is", "permits are"), o.Permits)
	case len(o.Holders) == 0:
		return "Nobody holds it, but somebody is in its queue: the first in line may take it."
	}
	return held(s) + waited(o)
}

// held says who has a lock, and for how long.
func held(s *lockState) string {
	o := &s.object
	h := o.Holders[0]
	name := who(h.ID, h.Client, h.Who)
	text := name.Name
	if name.Where != "" {
		text += " (" + name.Where + ")"
	}
	if o.HolderCount > 1 {
		text += fmt.Sprintf(" and %d %s", o.HolderCount-1, plural(o.HolderCount-1, "other", "others"))
	}
	verb := " holds it"
	switch {
	case h.Write:
		verb = " holds it for writing"
	case o.Type == redisson.TypeReadWrite:
		verb = " holds it for reading"
	}
	if o.HolderCount > 1 {
		verb = " hold" + verb[len(" holds"):]
	}
	text += verb
	if age := time.Since(s.seen[h.ID]); age >= time.Second {
		text += ", and has for at least " + spanText(age)
	}
	if o.TTL < 0 {
		return text + ". It does not end by itself."
	}
	return text + ". Unless it is renewed, it ends by itself when its lease is over."
}

// waited describes the waiters.
func waited(o *redisson.Object) string {
	n := max(o.QueueLength, o.Listeners)
	switch {
	case isFair(o):
		return fmt.Sprintf(" %d %s in its queue.", o.QueueLength, plural(o.QueueLength, "waits", "wait"))
	case n > 0:
		return fmt.Sprintf(" %d %s for it.", n, plural(n, "process waits", "processes wait"))
	}
	return " Nobody is known to wait."
}

func plural(n int64, one, more string) string {
	if n == 1 {
		return one
	}
	return more
}
