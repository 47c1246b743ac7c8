package transport

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/latchkey-go/latchkey/internal/reply"
	"github.com/redis/go-redis/v9"
)

// ErrNotReplicated is why a call failed that too few replicas have confirmed in time.
var ErrNotReplicated = errors.New("redisson: not replicated: the lock was not confirmed by enough replicas")

// Replicas says how many have to confirm what a script takes, and within what time. The zero value asks for none.
type Replicas struct {
	Count   int // or Online
	Timeout time.Duration
}

// Online is a count: one replica, of a master that has any online.
const Online = -1

// followers is what a lane knows of the replicas of its master, from the master itself. The road's mutex guards it.
type followers struct {
	online int
	asked  time.Time
	denied int // of the questions: those that the user may not ask
}

// followersBy are the questions that tell how many replicas are online.
var followersBy = [][]any{{"role"}, {"info", "replication"}}

const (
	followersAge = time.Second
	deniedAge    = time.Minute // after which rights may be others
)

// confirms returns how many replicas confirm what is taken along a lane: as many as they have to be, or as are online there. If that is to be
// asked, it returns the question.
func (r *Road) confirms(l *lane) (online int, ask *single) {
	if r.Replicas.Count >= 0 {
		return r.Replicas.Count, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Since(l.followers.asked) < followersAge {
		return l.followers.online, nil
	}
	return 0, &single{redis.NewCmd(context.Background(), followersBy[l.followers.denied]...)}
}

// counted notes the answer of a master about its replicas, and returns how many are online.
func (r *Road) counted(l *lane, ask *single) int {
	n, err := online(ask)
	r.mu.Lock()
	defer r.mu.Unlock()
	f := &l.followers
	f.online, f.asked = n, time.Now()
	switch {
	case err == nil:
	case !reply.IsReply(err):
		f.asked = time.Time{}
	case f.denied+1 < len(followersBy):
		f.denied, f.asked = f.denied+1, time.Time{}
	default:
		f.denied = 0
		r.deniedLocked(l, err)
	}
	return n
}

// deniedLocked has a master not asked about its replicas for a while.
func (r *Road) deniedLocked(l *lane, err error) {
	l.followers.online, l.followers.asked = 0, time.Now().Add(deniedAge-followersAge)
	if reply.Classify(err).NoRight { // some servers, as in tests, have no such command
		r.denied.Do(func() {
			slog.Warn("redisson: replicas do not confirm locks, as the user may not ask: allow +wait, and +role or +info", "error", err)
		})
	}
}

// online reads how many replicas a master has online.
func online(ask *single) (n int, err error) {
	switch v := ask.Val().(type) {
	case []any: // ROLE, which lists no others
		if len(v) > 2 && v[0] == "master" {
			list, _ := v[2].([]any)
			n = len(list)
		}
	case string:
		n = strings.Count(v, "state=online")
	}
	return n, ask.Err()
}

// wait waits for replicas, for as long as leaves the asker the time to hear of it, also from a busy machine.
func (r *Road) wait(t *trip) *single {
	within := max(time.Millisecond, min(r.Replicas.Timeout, time.Until(t.by)/2))
	return &single{redis.NewCmd(t, "wait", max(1, r.Replicas.Count), within.Milliseconds())}
}

// confirm has replicas confirm what calls have just taken. WAIT speaks of the writes of its own connection: it came behind the calls, with
// which it travelled. One is for all of them.
func (r *Road) confirm(t *trip, wait *single, calls []Call, answers []Answer) {
	var taken []int
	for i, a := range answers {
		if calls[i].Script.Takes && a.Yes() {
			taken = append(taken, i)
		}
	}
	if len(taken) == 0 {
		return
	}
	if wait == nil { // only now is it known that there are replicas: to take a lock again does nothing but to say so
		for _, i := range taken {
			answers[i] = r.attempt(t, calls[i:i+1], evalsha)[0]
		}
		return
	}
	got, err := wait.Int()
	if got >= max(1, r.Replicas.Count) || r.Replicas.Count == Online && r.alone(t, err) {
		return
	}
	if err == nil {
		err = fmt.Errorf("%d of %d within %v ms", got, max(1, r.Replicas.Count), wait.Args()[2])
	}
	for _, i := range taken {
		answers[i].Err, answers[i].Doubts = fmt.Errorf("%w: %w", ErrNotReplicated, err), 1
	}
}

// alone reports whether a master whose replicas have not confirmed has none any more, or the user may not ask for them.
func (r *Road) alone(t *trip, err error) bool {
	if err != nil {
		refused := reply.IsReply(err) && reply.Classify(err).Refused
		if refused {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.deniedLocked(t.lane, err)
		}
		return refused
	}
	r.mu.Lock()
	ask := single{redis.NewCmd(t, followersBy[t.lane.followers.denied]...)}
	r.mu.Unlock()
	return t.send(ask, t.via.Process) == nil && r.counted(t.lane, &ask) == 0
}
