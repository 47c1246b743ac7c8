package redisson

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/latchkey-go/latchkey/internal/reply"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/redis/go-redis/v9"
)

// call is a script with what it is run on. Every call is safe to repeat. Every script finds one more ARGV, the last one: the
// command to publish with. Channels are in ARGV, too: in KEYS, a channel would be a key that is never there, for which a
// cluster refuses the script as long as the slot is on the move, and which an ACL user would have to be allowed.
type call struct {
	script *script
	keys   []string
	args   []any
}

// answer is what became of a call.
type answer struct {
	values []int64
	list   []any     // behind the values, of a script that has one
	sent   time.Time // when the attempt that was answered was sent, on the monotonic clock
	doubts int       // attempts that were not answered: each may have run, or may yet
	err    error
}

// yes reports whether the call was answered and the first value is 1.
func (a answer) yes() bool { return a.err == nil && a.values[0] == 1 }

// failed reports whether the server gave no answer that is true of the call.
func (a answer) failed() bool {
	return a.err != nil && (!reply.IsReply(a.err) || reply.Transient(a.err))
}

// gone reports whether a holder was not there any more. It is also gone when a stranger has written a value of another type over
// the lock.
func (a answer) gone() bool { return a.err == nil && a.values[0] == 0 || wrongType(a.err) }

// errNoAnswer is the outage error: Redis did not answer in time.
var errNoAnswer = errors.New("no answer from Redis")

// How a call is repeated: soon at first, then less often.
const (
	firstPause  = 8 * time.Millisecond
	maxPause    = 256 * time.Millisecond
	pauseGrowth = 4
)

// perform makes one attempt at each call, all in one round trip. What the server did not know the script of, it asks again, with the
// whole text. Only that: others have run, and a release that runs once more would find nothing, as if the lock had been lost.
// go-redis repeats nothing by itself: only a client that knows of an earlier attempt can distinguish the two.
func (r *road) perform(ctx *deadline, via sender, calls []call) []answer {
	if len(calls) == 1 {
		return []answer{r.performOne(ctx, via, calls[0])}
	}
	answers := r.attempt(ctx, via, calls, evalsha)
	var unknown []call
	for i, a := range answers {
		if a.unknown() {
			unknown = append(unknown, calls[i])
		}
	}
	if len(unknown) == 0 {
		return answers
	}
	again := r.attempt(ctx, via, unknown, eval)
	for i, a := range answers {
		if a.unknown() {
			answers[i], again = again[0], again[1:]
		}
	}
	return answers
}

// performOne is perform for one call.
func (r *road) performOne(ctx *deadline, via sender, cl call) answer {
	a := r.attemptOne(ctx, via, cl, evalsha)
	if a.unknown() {
		a = r.attemptOne(ctx, via, cl, eval)
	}
	return a
}

// unknown reports whether the server does not have the script.
func (a answer) unknown() bool { return a.err != nil && redis.HasErrorPrefix(a.err, "NOSCRIPT") }

// The commands for a script: with its digest, and with the whole text. They are arguments like others.
var evalsha, eval any = "evalsha", "eval"

// attempt sends calls once.
func (r *road) attempt(ctx *deadline, via sender, calls []call, name any) []answer {
	sent := time.Now()
	publish, err := r.topology.publish(ctx)
	cmds, pipe := make([]single, len(calls)), via.Pipeline()
	for i, c := range calls {
		cmds[i] = c.command(ctx, name, publish)
		_ = pipe.Process(ctx, cmds[i]) // queues it
	}
	if err == nil {
		err = surviving(func() { _, _ = pipe.Exec(ctx) }) // each command has its own error
	}
	answers, room := make([]answer, len(calls)), make([]int64, 0, usualAnswer*len(calls))
	for i, cmd := range cmds {
		if err != nil {
			cmd.SetErr(err)
		}
		answers[i] = r.read(calls[i].script, cmd, sent, &room)
	}
	return answers
}

// attemptOne sends a call once.
func (r *road) attemptOne(ctx *deadline, via sender, cl call, name any) answer {
	sent := time.Now()
	publish, err := r.topology.publish(ctx)
	cmd := cl.command(ctx, name, publish)
	switch {
	case err != nil:
	case cl.script.takes && r.replicas.count > 0:
		err = surviving(func() { r.processConfirmed(ctx, cl.keys[0], cmd) })
	default:
		err = surviving(func() { _ = via.Process(ctx, cmd) }) // which has the error
	}
	if err != nil {
		cmd.SetErr(err)
	}
	var room []int64
	return r.read(cl.script, cmd, sent, &room)
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

func (r *road) read(s *script, cmd single, sent time.Time, room *[]int64) answer {
	a := answer{sent: sent}
	if s.lists {
		a.values, a.list, a.err = reply.Mixed(cmd.Cmd, room)
	} else {
		a.values, a.err = reply.Ints(cmd.Cmd, room)
	}
	if a.err != nil {
		r.topology.Doubt(a.err)
		if reply.MayHaveRun(a.err) {
			a.doubts = 1
		}
		if reply.Refused(a.err) {
			a.err = fmt.Errorf("redisson: %w: %w", lock.ErrRefused, a.err)
		}
	}
	return a
}

// single is a command that go-redis does not repeat by itself.
type single struct{ *redis.Cmd }

// NoRetry is asked by go-redis.
func (single) NoRetry() bool { return true }

func (c call) command(ctx context.Context, name, publish any) single {
	code := c.script.digest
	if name == eval {
		code = c.script.source
	}
	args := make([]any, 0, 4+len(c.keys)+len(c.args))
	args = append(args, name, code, len(c.keys))
	for _, k := range c.keys {
		args = append(args, k)
	}
	args = append(args, c.args...)
	cmd := redis.NewCmd(ctx, append(args, publish)...)
	cmd.SetFirstKeyPos(3)
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
func (r *road) repeatable(err error) bool {
	return !errors.Is(err, ErrNotReplicated) && (reply.Transient(err) || r.topology.Stale(err))
}

// lasting reports whether err is permanent. All others can come of a change of masters, or of a server that starts.
func lasting(err error) bool {
	return reply.IsReply(err) && !reply.Transient(err) || errors.Is(err, redis.ErrClosed) || errors.Is(err, ErrNotReplicated) ||
		errors.Is(err, lock.ErrUnsupported)
}

// wrongType reports whether err is the server's word that a key does not hold what the script works on. Servers before
// version 7 wrap it in other words.
func wrongType(err error) bool {
	return reply.IsReply(err) && strings.Contains(err.Error(), "WRONGTYPE")
}

// sleep waits for d, and returns false if ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}
