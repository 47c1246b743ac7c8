package transport

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
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

// unconfirmed is told once in a process, to those who want details: one server is all that many have.
var unconfirmed sync.Once

// confirms returns the lane of calls, if they take something, and how many replicas are online at its master. If that is to be asked, it returns
// the question, too. The lane is nil where nothing is to be confirmed.
func (r *Road) confirms(key string, takes bool) (l *lane, online int, ask *single) {
	if !takes || r.Replicas.Count == 0 {
		return nil, 0, nil
	}
	address := r.topology.Master(key)
	r.mu.Lock()
	defer r.mu.Unlock()
	l = r.laneLocked(address)
	if r.Replicas.Count > 0 || time.Since(l.followers.asked) < followersAge {
		return l, l.followers.online, nil
	}
	return l, 0, &single{redis.NewCmd(context.Background(), followersBy[l.followers.denied]...)}
}

// counted notes the answer of a master about its replicas, and returns how many are online.
func (r *Road) counted(l *lane, ask *single) int {
	n, err := online(ask)
	r.mu.Lock()
	defer r.mu.Unlock()
	f := &l.followers
	f.online, f.asked = n, time.Now()
	switch {
	case err == nil && n == 0:
		unconfirmed.Do(func() {
			slog.Debug("redisson: no replica is online: nothing confirms locks, and a server that is lost takes them along")
		})
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

// confirmed reports whether a master with so many replicas online has its locks confirmed.
func (r *Road) confirmed(online int) bool { return online > 0 || r.Replicas.Count > 0 }

// wait waits for replicas, for as long as leaves the asker the time to hear of it, also from a busy machine.
func (r *Road) wait(ctx *deadline) *single {
	within := max(time.Millisecond, min(r.Replicas.Timeout, time.Until(ctx.at)/2))
	return &single{redis.NewCmd(ctx, "wait", max(1, r.Replicas.Count), within.Milliseconds())}
}

// confirm has replicas confirm what calls have just taken. WAIT speaks of the writes of its own connection: it came behind the calls, with
// which it travelled, or comes now in their session. One is for all of them.
func (r *Road) confirm(ctx *deadline, via reply.Sender, l *lane, wait *single, calls []Call, answers []Answer) {
	var taken []int
	for i, a := range answers {
		if calls[i].takes() && a.Yes() {
			taken = append(taken, i)
		}
	}
	if len(taken) == 0 {
		return
	}
	var err error
	if _, one := via.(*session); one {
		wait = r.wait(ctx)
		err = surviving(func() { _ = via.Process(ctx, wait) })
	}
	got := 0
	switch {
	case wait == nil: // only now is it known that there are replicas: to take a lock again does nothing but to say so
		for _, i := range taken {
			answers[i] = r.attempt(ctx, via, calls[i:i+1], evalsha)[0]
		}
		return
	case err == nil:
		got, err = wait.Int()
	}
	if got >= max(1, r.Replicas.Count) || r.Replicas.Count == Online && r.alone(ctx, via, l, err) {
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
func (r *Road) alone(ctx *deadline, conn reply.Sender, l *lane, err error) bool {
	if err != nil {
		refused := reply.IsReply(err) && reply.Classify(err).Refused
		if refused {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.deniedLocked(l, err)
		}
		return refused
	}
	r.mu.Lock()
	ask := single{redis.NewCmd(ctx, followersBy[l.followers.denied]...)}
	r.mu.Unlock()
	if surviving(func() { _ = conn.Process(ctx, ask) }) != nil || ask.Err() != nil {
		return false
	}
	return r.counted(l, &ask) == 0
}

// atMaster returns what sends to the key's master, and nothing elsewhere: nil where the master is not known.
func (r *Road) atMaster(via reply.Sender, key string) reply.Sender {
	if _, many := via.(*redis.ClusterClient); !many {
		return via
	}
	if node := r.topology.Node(key); node != nil {
		return node
	}
	return nil
}
