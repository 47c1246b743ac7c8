package transport

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/latchkey-go/latchkey/internal/reply"
	"github.com/redis/go-redis/v9"
)

// Script is a Lua script with its SHA-1 digest.
type Script struct {
	Source, SHA string
	Name        string // which no other script has
	Takes       bool   // what replicas may have to confirm
	Lists       bool   // answers a list behind its integers
	digest      any    // SHA as an argument
}

// NewScript returns a script. EVALSHA wants SHA-1, which a program in FIPS mode may not compute: the digest is given.
func NewScript(name, source, sha string) *Script {
	return &Script{Source: source, SHA: sha, Name: name, digest: sha}
}

// Call is a script with its keys and arguments. Every call is safe to repeat. Every script finds one more ARGV, the
// last one: the command to publish with. Channels are in ARGV, too: in KEYS, a channel would be a key that is never
// there, for which a cluster refuses the script as long as the slot is on the move, and which an ACL user would have to
// be allowed.
type Call struct {
	Script *Script
	Keys   []string // an empty first one stands for none: any master will do
	Args   []any
	Spare  int // so many of the last keys may be left out: where a user has no right to them, or the slot of a cluster is on the move
}

// spared is the call without its spare keys.
func (c Call) spared() Call {
	c.Keys, c.Spare = c.Keys[:len(c.Keys)-c.Spare], 0
	return c
}

// Spares reports whether questions have their spare keys: until a server has refused one to its user.
func (r *Road) Spares() bool { return !r.sparing.Load() }

// judge repeats a call where the answer is not the last word: with the whole text if the server did not know the
// script, or without the spare keys if these may be to blame.
func (r *Road) judge(t *trip, cl Call, name any, a Answer) Answer {
	if a.Err == nil {
		return a
	}
	switch class := reply.Classify(a.Err); {
	case class.NoScript && name == evalsha:
		return r.performOne(t, cl, eval)
	case cl.Spare > 0 && (class.Apart || class.NoRight):
		a = r.performOne(t, cl.spared(), evalsha)
		if class.NoRight && (a.Err == nil || !reply.Classify(a.Err).NoRight) {
			r.sparing.Store(true)
		}
	}
	return a
}

// Answer is the outcome of a call.
type Answer struct {
	Values []int64
	List   []any     // behind the values, of a script that has one
	Sent   time.Time // when the attempt that was answered was sent, on the monotonic clock
	Doubts int       // attempts that were not answered: each may have run, or may yet
	Err    error
}

// Yes reports whether the call was answered and the first value is 1.
func (a Answer) Yes() bool { return a.Err == nil && a.Values[0] == 1 }

// Failed reports whether the server gave no answer that is true of the call.
func (a Answer) Failed() bool {
	return a.Err != nil && (!reply.IsReply(a.Err) || reply.Classify(a.Err).Repeat)
}

// WrongType reports whether the server said that a key has another type than the script works on.
func (a Answer) WrongType() bool { return a.Err != nil && reply.Classify(a.Err).WrongType }

// Gone reports whether a holder was not there any more. It is also Gone when a stranger has written a value of another type over
// the lock.
func (a Answer) Gone() bool { return a.Err == nil && a.Values[0] == 0 || a.Err != nil && a.WrongType() }

// ErrNoAnswer is the outage error: Redis did not answer in time.
var ErrNoAnswer = errors.New("no answer from Redis")

// How a call is repeated: soon at first, then less often.
const (
	firstPause  = 8 * time.Millisecond
	maxPause    = 256 * time.Millisecond
	pauseGrowth = 4
)

// perform makes one attempt at each call, all in one round trip. An answer that says that the connection leads to the
// wrong server is no attempt. Neither is a connection that has broken, as all of its age may have in a failover, which
// go-redis does not see with TLS. perform repeats these calls at once, as long as a fresh connection leads to the right
// server. go-redis repeats nothing by itself: only a client that knows of an earlier attempt can distinguish the two.
func (r *Road) perform(t *trip, calls []Call) []Answer {
	answers := r.performOnce(t, calls)
	if r.fresh != nil && slices.ContainsFunc(answers, Answer.elsewhere) {
		r.fresh.Repeat(t, answers[0].Sent, func(via reply.Sender) (wrong bool) {
			t.via = via
			answers = redo(calls, answers, Answer.elsewhere, func(calls []Call) []Answer { return r.performOnce(t, calls) })
			return slices.ContainsFunc(answers, Answer.elsewhere)
		})
	}
	return answers
}

// performOnce makes one attempt at each call. It repeats a call whose script the server did not know, with the whole
// text. It repeats no other: those have run, and a release that runs once more would find nothing, as if the lock had
// been lost.
func (r *Road) performOnce(t *trip, calls []Call) []Answer {
	if len(calls) == 1 {
		return []Answer{r.performOne(t, calls[0], evalsha)}
	}
	answers := redo(calls, r.attempt(t, calls, evalsha), Answer.unknown, func(calls []Call) []Answer {
		return r.attempt(t, calls, eval)
	})
	for i, a := range answers {
		answers[i] = r.judge(t, calls[i], eval, a)
	}
	return answers
}

// redo repeats the calls whose answers are wrong, and returns all answers. A call that gets no second answer keeps its
// first.
func redo(calls []Call, answers []Answer, wrong func(Answer) bool, do func([]Call) []Answer) []Answer {
	var again []Call
	for i, a := range answers {
		if wrong(a) {
			again = append(again, calls[i])
		}
	}
	if len(again) == 0 {
		return answers
	}
	later := do(again)
	for i, a := range answers {
		if wrong(a) && len(later) > 0 {
			answers[i], later = later[0], later[1:]
			answers[i].Doubts += a.Doubts
		}
	}
	return answers
}

// performOne is performOnce for one call. It asks with the digest of the script, or with the whole text.
func (r *Road) performOne(t *trip, cl Call, name any) Answer {
	if cl.Script.Takes {
		if online, ask := r.confirms(t.lane); online > 0 || ask != nil {
			return r.judge(t, cl, name, r.attempt(t, []Call{cl}, name)[0])
		}
	}
	sent, cmd := time.Now(), r.command(t, cl, name)
	if err := t.send(cmd, t.via.Process); err != nil {
		cmd.SetErr(err)
	}
	return r.judge(t, cl, name, r.read(cl.Script, cmd, sent))
}

// unknown reports whether the server does not have the script.
func (a Answer) unknown() bool { return a.Err != nil && reply.Classify(a.Err).NoScript }

// elsewhere reports whether the connection leads to the wrong server, to one that is not ready, or nowhere any more.
func (a Answer) elsewhere() bool {
	return a.Err != nil && (reply.Classify(a.Err).Elsewhere || reply.Broken(a.Err))
}

// The commands for a script: with its digest, and with the whole text. They are arguments like others.
var evalsha, eval any = "evalsha", "eval"

// attempt sends calls once.
func (r *Road) attempt(t *trip, calls []Call, name any) []Answer {
	sent, online := time.Now(), 0
	var failed error // each command has its own error, but for one of the connection's making
	var ask, wait *single
	if slices.ContainsFunc(calls, func(c Call) bool { return c.Script.Takes }) {
		online, ask = r.confirms(t.lane)
	}
	if (online > 0 || ask != nil) && !t.toMaster() {
		return slices.Repeat([]Answer{{Sent: sent, Err: ErrNoAnswer}}, len(calls))
	}
	if online > 0 {
		wait = r.wait(t)
	}
	cmds, pipe := make([]single, len(calls)), t.via.Pipeline()
	for i, c := range calls {
		cmds[i] = r.command(t, c, name)
		_ = pipe.Process(t, cmds[i]) // queues it
	}
	for _, more := range []*single{ask, wait} {
		if more != nil {
			_ = pipe.Process(t, *more)
		}
	}
	err := t.send(nil, func(ctx context.Context, _ redis.Cmder) error { _, failed = pipe.Exec(ctx); return nil })
	answers := make([]Answer, len(calls))
	for i, cmd := range cmds {
		switch {
		case err != nil:
			cmd.SetErr(err)
		case cmd.Err() == nil && cmd.Val() == nil: // a script always answers
			cmd.SetErr(cmp.Or(failed, ErrNoAnswer))
		}
		answers[i] = r.read(calls[i].Script, cmd, sent)
	}
	if ask != nil && err == nil {
		online = r.counted(t.lane, ask)
	}
	if online > 0 {
		r.confirm(t, wait, calls, answers)
	}
	return answers
}

func (r *Road) read(s *Script, cmd single, sent time.Time) Answer {
	var room []int64
	a := Answer{Sent: sent}
	if s.Lists {
		a.Values, a.List, a.Err = reply.Mixed(cmd.Cmd, &room)
	} else {
		a.Values, a.Err = reply.Ints(cmd.Cmd, &room)
	}
	if a.Err != nil {
		if !r.topology.Mapped() {
			a.Err = reply.Alone(a.Err)
		}
		r.topology.Doubt(a.Err)
		if reply.MayHaveRun(a.Err) {
			a.Doubts = 1
		}
		switch {
		case reply.Classify(a.Err).Refused:
			a.Err = r.Refuse(a.Err)
		case errors.Is(a.Err, redis.ErrPoolTimeout), errors.Is(a.Err, redis.ErrPoolExhausted):
			a.Err = fmt.Errorf("%w: %w", r.Overload, a.Err)
		}
	}
	return a
}

// single is a command that go-redis does not repeat by itself.
type single struct{ *redis.Cmd }

// NoRetry keeps go-redis from repeating the command by itself.
func (single) NoRetry() bool { return true }

func (r *Road) command(t *trip, c Call, name any) single {
	if r.sparing.Load() {
		c = c.spared()
	}
	code := c.Script.digest
	if name == eval {
		code = c.Script.Source
	}
	keys, first := c.Keys, int8(3)
	if keys[0] == "" {
		keys, first = nil, 0
	}
	args := make([]any, 0, 4+len(keys)+len(c.Args))
	args = append(args, name, code, len(keys))
	for _, k := range keys {
		args = append(args, k)
	}
	args = append(args, c.Args...)
	cmd := redis.NewCmd(t, append(args, t.publish)...)
	cmd.SetFirstKeyPos(first)
	return single{cmd}
}

// trip is one way of calls to their master and back, with the state of the topology at the start. To go-redis it is a
// context that only has a deadline, to give to its connections. Nobody is woken by its end.
type trip struct {
	context.Context
	by      time.Time
	via     reply.Sender
	node    *redis.Client // of the master; nil as long as that is not known
	lane    *lane         // to the master
	publish any           // the command to publish with
	err     error         // why it is not known, and nothing is sent
}

// send has go-redis do something, which can panic over a reply that no Redis would give. The error says so; the call may have run.
func (t *trip) send(cmd redis.Cmder, do func(context.Context, redis.Cmder) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("redisson: go-redis panicked: %v", p)
		}
	}()
	if t.err != nil {
		return t.err
	}
	return do(t, cmd)
}

// Deadline implements [context.Context].
func (t *trip) Deadline() (time.Time, bool) { return t.by, true }

// Err implements [context.Context].
func (t *trip) Err() error {
	if time.Now().Before(t.by) {
		return nil
	}
	return context.DeadlineExceeded
}

// toMaster makes a trip lead to its master, and nowhere else. It reports whether that is possible: not if the master is
// not known.
func (t *trip) toMaster() bool {
	_, many := t.via.(*redis.ClusterClient)
	if many && t.node != nil {
		t.via, many = t.node, false
	}
	return !many
}

// repeatable reports whether another attempt can help. A server that can't be reached is an error at once, because go-redis has
// tried several times; in a cluster, another one may have taken its place.
func (r *Road) repeatable(err error) bool {
	return !errors.Is(err, ErrNotReplicated) && (reply.Classify(err).Repeat || r.topology.Stale(err))
}

// Earlier returns the earlier of two times.
func Earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
