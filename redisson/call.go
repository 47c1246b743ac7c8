package redisson

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson/internal/reply"
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

// perform makes one attempt at each call, all in one round trip. If the server does not know one of the scripts, it asks again for
// all, with the whole texts: each call is safe to repeat. go-redis repeats nothing by itself: only a client that knows of an
// earlier attempt can distinguish a release that finds nothing from a lost lock.
func (r *road) perform(via sender, calls []call, by time.Time) []answer {
	answers := r.attempt(via, calls, by, "evalsha")
	if slices.ContainsFunc(answers, func(a answer) bool { return redis.HasErrorPrefix(a.err, "NOSCRIPT") }) {
		answers = r.attempt(via, calls, by, "eval")
	}
	return answers
}

// attempt sends calls once, with the digests of their scripts (EVALSHA) or the whole texts (EVAL).
func (r *road) attempt(via sender, calls []call, by time.Time, name any) []answer {
	ctx := deadline{context.Background(), by}
	sent := time.Now()
	publish, err := r.topology.publish(ctx)
	cmds := make([]single, len(calls))
	for i, c := range calls {
		cmds[i] = c.command(ctx, name, publish)
		cmds[i].SetErr(err)
	}
	if err == nil {
		r.process(ctx, via, calls, cmds)
	}
	answers, room := make([]answer, len(calls)), make([]int64, 0, usualAnswer*len(calls))
	for i, cmd := range cmds {
		answers[i] = r.read(cmd, sent, &room)
	}
	return answers
}

// process sends the commands of calls. Each has its own error afterwards.
func (r *road) process(ctx context.Context, via sender, calls []call, cmds []single) {
	if len(cmds) == 1 {
		if calls[0].script.takes && r.replicas.count > 0 {
			r.processConfirmed(ctx, calls[0].keys[0], cmds[0])
		} else {
			_ = via.Process(ctx, cmds[0])
		}
		return
	}
	pipe := via.Pipeline()
	for _, cmd := range cmds {
		_ = pipe.Process(ctx, cmd) // queues it
	}
	_, _ = pipe.Exec(ctx)
}

// usualAnswer is how many integers most scripts answer.
const usualAnswer = 3

func (r *road) read(cmd single, sent time.Time, room *[]int64) answer {
	a := answer{sent: sent}
	a.values, a.err = reply.Ints(cmd.Cmd, room)
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
	code := c.script.sha
	if name == "eval" {
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

// Deadline implements [context.Context].
func (d deadline) Deadline() (time.Time, bool) { return d.at, true }

// Err implements [context.Context].
func (d deadline) Err() error {
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
