package transport

import (
	"errors"
	"fmt"
	"time"

	"github.com/latchkey-go/latchkey/internal/reply"
)

// A question can fail though Redis would have answered it: where it got no connection in time, and where this process was too busy to hear the
// answer. That is overload, and no outage of Redis; what the asker does about it is the same.

// silenceLocked returns the error of q, whose time is over now: ErrNoAnswer if Redis was silent, or overload. It is overload if q stood in line for
// most of its time while others were answered or had no connection, if this process is too busy to hear, or if others have the connections.
func (r *Road) silenceLocked(q *question, now time.Time) error {
	half := now.Sub(q.asked) / 2
	inLine := q.sent.IsZero() || q.sent.Sub(q.asked) > half
	if inLine && (now.Sub(q.lane.heard) < half || now.Sub(r.crowded) < half) || r.lateLocked(now) > half/2 || r.lentOutLocked(q, now.Add(-half/2)) {
		r.crowded = now
		return r.Overload
	}
	return ErrNoAnswer
}

// lateLocked returns how late the sweeper has been lately: a measure of how busy this process is.
func (r *Road) lateLocked(now time.Time) time.Duration {
	if r.sweepAt.IsZero() {
		return r.late
	}
	return r.late + max(0, now.Sub(r.sweepAt))
}

// lentOutLocked reports whether go-redis may still have no connection for q: others have all of them, and our workers stand in its line since the
// given time. For a moment they do so as well where Redis is silent, behind questions that were given up.
func (r *Road) lentOutLocked(q *question, since time.Time) bool {
	node := r.topology.Node(q.calls[0].Keys[0])
	if node == nil || q.lane.left.After(since) {
		return false
	}
	s := node.PoolStats()
	return q.lane.busy > 0 && int(s.PendingRequests) >= q.lane.busy && int(s.TotalConns-s.IdleConns) >= r.Workers
}

// judgeLocked has those answers to q that a worker did not get, and whose time is over, say why.
func (r *Road) judgeLocked(q *question, answers []Answer) {
	for i := range answers {
		switch a := &answers[i]; {
		case a.Err == nil, reply.IsReply(a.Err):
		case errors.Is(a.Err, r.Overload):
			r.crowded = time.Now()
		case !time.Now().Before(q.by):
			a.Err = r.silenceLocked(q, time.Now())
		}
	}
}

// NoAnswer is the error of somebody who has waited for that long for the answer to another's question.
func (r *Road) NoAnswer(after time.Duration) error {
	r.mu.Lock()
	now := time.Now()
	crowded := now.Sub(r.crowded) < after || r.lateLocked(now) > after/4
	r.mu.Unlock()
	return r.noAnswer(after, crowded)
}

func (r *Road) noAnswer(after time.Duration, crowded bool) error {
	after = after.Round(time.Millisecond)
	if !crowded {
		return fmt.Errorf("redisson: %w within %v", ErrNoAnswer, after)
	}
	queued, _ := r.Load()
	return fmt.Errorf("redisson: %w within %v, with %d questions in line for %d connections: ask less at once, or give go-redis a larger PoolSize",
		r.Overload, after, queued, r.Workers)
}

// Load returns how many questions are in line for a connection, and how many connections of go-redis' pools are in use.
func (r *Road) Load() (queued, connections int) {
	s := r.rdb.PoolStats()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, l := range r.lanes {
		queued += len(l.queue)
	}
	return queued, int(s.TotalConns - s.IdleConns)
}
