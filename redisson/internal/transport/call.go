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
	Keyless     bool   // the key only says which master is asked
	digest      any    // SHA as an argument
}

// NewScript returns a script. EVALSHA wants SHA-1, which a program in FIPS mode may not compute: the digest is given.
func NewScript(name, source, sha string) *Script {
	return &Script{Source: source, SHA: sha, Name: name, digest: sha}
}

// Call is a script with what it is run on. Every call is safe to repeat. Every script finds one more ARGV, the last one: the
// command to publish with. Channels are in ARGV, too: in KEYS, a channel would be a key that is never there, for which a
// cluster refuses the script as long as the slot is on the move, and which an ACL user would have to be allowed.
type Call struct {
	Script *Script
	Keys   []string
	Args   []any
	Spare  bool // the last key may be left out: where a user has no right to it, or the slot of a cluster is on the move
}

// spared is the call without its spare key, if it has one.
func (c Call) spared() Call {
	if c.Spare {
		c.Keys, c.Spare = c.Keys[:len(c.Keys)-1], false
	}
	return c
}

// Spares reports whether questions are answered with their spare keys, as far as is known.
func (r *Road) Spares() bool { return !r.refused.Load() }

// asksSpares reports whether spare keys are asked for: not for a while after a server has refused one to its user.
func (r *Road) asksSpares() bool { return time.Now().UnixNano() >= r.sparing.Load() }

// spareTime is how long spare keys are left out then.
const spareTime = time.Minute

// withoutSpare has a call done again whose spare key may be to blame for the answer.
func (r *Road) withoutSpare(ctx *deadline, via reply.Sender, cl Call, a Answer) Answer {
	if !cl.Spare {
		return a
	}
	if a.Err == nil {
		if r.refused.Load() && r.asksSpares() {
			r.refused.Store(false)
		}
		return a
	}
	class := reply.Classify(a.Err)
	if !class.Apart && !class.NoRight {
		return a
	}
	a = r.performOne(ctx, via, cl.spared())
	if class.NoRight && (a.Err == nil || !reply.Classify(a.Err).NoRight) {
		r.sparing.Store(time.Now().Add(spareTime).UnixNano())
		r.refused.Store(true)
	}
	return a
}

// Answer is what became of a call.
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

// WrongType reports whether the server said that a key does not hold what the script works on.
func (a Answer) WrongType() bool { return a.Err != nil && reply.Classify(a.Err).WrongType }

// Gone reports whether a holder was not there any more. It is also Gone when a stranger has written a value of another type over
// the lock.
func (a Answer) Gone() bool { return a.Err == nil && a.Values[0] == 0 || a.WrongType() }

// ErrNoAnswer is the outage error: Redis did not answer in time.
var ErrNoAnswer = errors.New("no answer from Redis")

// How a call is repeated: soon at first, then less often.
const (
	firstPause  = 8 * time.Millisecond
	maxPause    = 256 * time.Millisecond
	pauseGrowth = 4
)

// perform makes one attempt at each call, all in one round trip. An answer that says that the connection leads to the wrong server is no
// attempt, nor is a connection that has broken, as all of its age may have in a failover, which go-redis does not see with TLS: these calls
// are asked again at once, as long as a fresh connection leads to the right server. go-redis repeats nothing by itself: only a client that
// knows of an earlier attempt can distinguish the two.
func (r *Road) perform(ctx *deadline, via reply.Sender, calls []Call) []Answer {
	answers := r.performOnce(ctx, via, calls)
	if r.fresh != nil && slices.ContainsFunc(answers, Answer.elsewhere) {
		r.fresh.Repeat(ctx, answers[0].Sent, func(via reply.Sender) (wrong bool) {
			answers = redo(calls, answers, Answer.elsewhere, func(calls []Call) []Answer { return r.performOnce(ctx, via, calls) })
			return slices.ContainsFunc(answers, Answer.elsewhere)
		})
	}
	return answers
}

// performOnce makes one attempt at each call. What the server did not know the script of, it asks again, with the whole text. Only that:
// others have run, and a release that runs once more would find nothing, as if the lock had been lost.
func (r *Road) performOnce(ctx *deadline, via reply.Sender, calls []Call) []Answer {
	if len(calls) == 1 {
		return []Answer{r.performOne(ctx, via, calls[0])}
	}
	answers := redo(calls, r.attempt(ctx, via, calls, evalsha), Answer.unknown, func(calls []Call) []Answer {
		return r.attempt(ctx, via, calls, eval)
	})
	for i, a := range answers {
		answers[i] = r.withoutSpare(ctx, via, calls[i], a)
	}
	return answers
}

// redo has those calls done again whose answers are wrong, and returns all answers. What is not answered again keeps its answer.
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

// performOne is performOnce for one call.
func (r *Road) performOne(ctx *deadline, via reply.Sender, cl Call) Answer {
	a := r.attemptOne(ctx, via, cl, evalsha)
	if a.unknown() {
		a = r.attemptOne(ctx, via, cl, eval)
	}
	return r.withoutSpare(ctx, via, cl, a)
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
func (r *Road) attempt(ctx *deadline, via reply.Sender, calls []Call, name any) []Answer {
	sent := time.Now()
	publish, err := r.topology.Publish(ctx)
	var failed error
	l, online, ask := r.confirms(calls[0].Keys[0], slices.ContainsFunc(calls, Call.takes))
	var wait *single
	if l != nil {
		if via = r.atMaster(via, calls[0].Keys[0]); via == nil {
			return slices.Repeat([]Answer{{Sent: sent, Err: ErrNoAnswer}}, len(calls))
		}
		if _, one := via.(*session); !one && r.confirmed(online) {
			wait = r.wait(ctx)
		}
	}
	cmds, pipe := make([]single, len(calls)), via.Pipeline()
	for i, c := range calls {
		cmds[i] = r.command(ctx, c, name, publish)
		_ = pipe.Process(ctx, cmds[i]) // queues it
	}
	for _, more := range []*single{ask, wait} {
		if more != nil {
			_ = pipe.Process(ctx, *more)
		}
	}
	if err == nil {
		err = surviving(func() { _, failed = pipe.Exec(ctx) }) // each command has its own error, but for one of the connection's making
	}
	answers, room := make([]Answer, len(calls)), make([]int64, 0, usualAnswer*len(calls))
	for i, cmd := range cmds {
		switch {
		case err != nil:
			cmd.SetErr(err)
		case cmd.Err() == nil && cmd.Val() == nil: // a script always answers
			cmd.SetErr(cmp.Or(failed, ErrNoAnswer))
		}
		answers[i] = r.read(calls[i].Script, cmd, sent, &room)
	}
	if ask != nil && err == nil {
		online = r.counted(l, ask)
	}
	if l != nil && r.confirmed(online) {
		r.confirm(ctx, via, l, wait, calls, answers)
	}
	return answers
}

func (c Call) takes() bool { return c.Script.Takes }

// attemptOne sends a call once.
func (r *Road) attemptOne(ctx *deadline, via reply.Sender, cl Call, name any) Answer {
	if l, online, ask := r.confirms(cl.Keys[0], cl.Script.Takes); l != nil && (ask != nil || r.confirmed(online)) {
		return r.attempt(ctx, via, []Call{cl}, name)[0]
	}
	sent := time.Now()
	publish, err := r.topology.Publish(ctx)
	cmd := r.command(ctx, cl, name, publish)
	if err == nil {
		err = surviving(func() { _ = via.Process(ctx, cmd) }) // which has the error
	}
	if err != nil {
		cmd.SetErr(err)
	}
	var room []int64
	return r.read(cl.Script, cmd, sent, &room)
}

// surviving sends something by go-redis, which can panic over a reply that no Redis would give. The error says so; the call may have run.
func surviving(send func()) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("redisson: go-redis panicked: %v", p)
		}
	}()
	send()
	return nil
}

// usualAnswer is how many integers most scripts answer.
const usualAnswer = 3

func (r *Road) read(s *Script, cmd single, sent time.Time, room *[]int64) Answer {
	a := Answer{Sent: sent}
	if s.Lists {
		a.Values, a.List, a.Err = reply.Mixed(cmd.Cmd, room)
	} else {
		a.Values, a.Err = reply.Ints(cmd.Cmd, room)
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

// NoRetry is asked by go-redis.
func (single) NoRetry() bool { return true }

func (r *Road) command(ctx context.Context, c Call, name, publish any) single {
	if c.Spare && !r.asksSpares() {
		c = c.spared()
	}
	code := c.Script.digest
	if name == eval {
		code = c.Script.Source
	}
	keys, first := c.Keys, int8(3)
	if c.Script.Keyless {
		keys, first = nil, 0
	}
	args := make([]any, 0, 4+len(keys)+len(c.Args))
	args = append(args, name, code, len(keys))
	for _, k := range keys {
		args = append(args, k)
	}
	args = append(args, c.Args...)
	cmd := redis.NewCmd(ctx, append(args, publish)...)
	cmd.SetFirstKeyPos(first)
	return single{cmd}
}

// deadline is a context that only has a deadline, for go-redis to give to its connections. Nobody is woken by its end.
type deadline struct {
	context.Context
	at time.Time
}

func deadlineAt(at time.Time) deadline { return deadline{context.Background(), at} }

// Deadline implements [context.Context].
func (d *deadline) Deadline() (time.Time, bool) { return d.at, true }

// Err implements [context.Context].
func (d *deadline) Err() error {
	if time.Now().Before(d.at) {
		return nil
	}
	return context.DeadlineExceeded
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
