package redisson

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/latchkey-go/latchkey/redisson/internal/reply"
	"github.com/redis/go-redis/v9"
)

// call is a script with what it is run on. Every call is safe to repeat. Every script finds one more ARGV, the last one: the
// command to publish with. Channels are in ARGV, too: in KEYS, a channel would be a key that is never there, for which a
// cluster refuses the script as long as the slot is on the move, and which an ACL user would have to be allowed.
type call struct {
	script script
	keys   []string
	args   []any
}

// answer is what became of a call.
type answer struct {
	values  []int64
	sent    time.Time // when the attempt that was answered was sent, on the monotonic clock
	inDoubt bool      // an attempt was not answered: the script may have run once more than is known
	late    bool      // the caller did not stay for it; err says why
	err     error
}

// The bounds of repeating a call that was not answered.
const (
	maxRepeats  = 3
	firstPause  = 8 * time.Millisecond
	pauseGrowth = 4
)

// perform runs call until it is answered, ctx ends, or it was repeated often enough.
//
// It repeats by itself instead of leaving it to go-redis because it must know whether an attempt may have run unseen: a
// release that finds nothing is a success after such an attempt, and a lost lock otherwise.
func (c *Client) perform(ctx context.Context, cl call) answer {
	a := answer{}
	pause := firstPause
	for repeat := 0; ; repeat++ {
		a.sent = time.Now()
		a.values, a.err = c.send(ctx, cl)
		if errors.Is(a.err, ErrNotReplicated) { // it ran, and is to be undone
			a.inDoubt = true
			return a
		}
		if a.err == nil || !reply.Transient(a.err) && !c.topology.Stale(a.err) {
			return a
		}
		a.inDoubt = a.inDoubt || reply.MayHaveRun(a.err)
		if repeat == maxRepeats || !sleep(ctx, pause) {
			return a
		}
		pause *= pauseGrowth
	}
}

// send makes one attempt, and a second one with the whole text for a server that does not know the digest.
func (c *Client) send(ctx context.Context, cl call) ([]int64, error) {
	publish, err := c.topology.publish(ctx)
	if err != nil {
		return nil, err
	}
	cmd := cl.command(ctx, "evalsha", cl.script.sha, publish)
	err = c.process(ctx, cl, cmd)
	if redis.HasErrorPrefix(err, "NOSCRIPT") {
		cmd = cl.command(ctx, "eval", cl.script.source, publish)
		err = c.process(ctx, cl, cmd)
	}
	if err != nil {
		c.topology.Doubt(err)
		return nil, err
	}
	return cmd.Int64Slice()
}

// once is a command that go-redis does not repeat by itself.
type once struct{ *redis.Cmd }

// NoRetry is asked by go-redis.
func (once) NoRetry() bool { return true }

func (cl call) command(ctx context.Context, name, code, publish string) once {
	args := make([]any, 0, 4+len(cl.keys)+len(cl.args))
	args = append(args, name, code, len(cl.keys))
	for _, k := range cl.keys {
		args = append(args, k)
	}
	args = append(args, cl.args...)
	cmd := redis.NewCmd(ctx, append(args, publish)...)
	cmd.SetFirstKeyPos(3)
	return once{cmd}
}

// passing tells whether err can be of a change of masters, and over by itself.
func passing(err error) bool {
	if errors.Is(err, redis.ErrClosed) || errors.Is(err, ErrNotReplicated) {
		return false
	}
	return !reply.IsReply(err) || reply.Transient(err)
}

// sleep waits for d, and returns false if ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// ask performs call for a caller who stays no longer than ctx and the client's timeout allow, however silent the server is.
//
// go-redis honours deadlines if its option ContextTimeoutEnabled says so. Then the call is made right here, and a caller
// whose context is cancelled leaves with the answer or at the deadline. Otherwise nothing can interrupt a command, so that
// it gets a goroutine of its own, which costs about as much as the call; late is given the answer that came after the
// caller had left, and such an answer is marked as late for the caller.
func (c *Client) ask(ctx context.Context, cl call, late func(answer)) answer {
	if c.interruptible {
		return c.askHere(ctx, cl)
	}
	detached, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.timeout)
	answers := make(chan answer, 1)
	c.start(func() {
		defer cancel()
		answers <- c.perform(detached, cl)
	})
	select {
	case a := <-answers:
		return a
	case <-ctx.Done():
		return c.abandon(answers, late, context.Cause(ctx))
	case <-detached.Done():
	}
	select {
	case a := <-answers: // it was the end of the call that ended detached
		return a
	default:
		return c.abandon(answers, late, c.errTimeout())
	}
}

// askHere performs call in the caller's goroutine. Neither a cancelled context nor one that has ended before keeps the
// call from going out: a release must.
func (c *Client) askHere(ctx context.Context, cl call) answer {
	end := time.Now().Add(c.timeout)
	err := c.errTimeout()
	if d, ok := ctx.Deadline(); ok && d.Before(end) && ctx.Err() == nil {
		end, err = d, context.DeadlineExceeded
	}
	detached, cancel := context.WithDeadline(context.WithoutCancel(ctx), end)
	defer cancel()
	a := c.perform(detached, cl)
	if a.err != nil && detached.Err() != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		a.err = err
	}
	return a
}

func (c *Client) errTimeout() error {
	return fmt.Errorf("redisson: no answer from Redis within %v", c.timeout)
}

func (c *Client) abandon(answers <-chan answer, late func(answer), err error) answer {
	c.start(func() { late(<-answers) })
	return answer{late: true, err: err}
}

// pipeline performs calls in one round trip, and a second one for scripts that the server does not know.
func (c *Client) pipeline(ctx context.Context, calls []call) []answer {
	answers := make([]answer, len(calls))
	publish, err := c.topology.publish(ctx)
	if err != nil {
		for i := range answers {
			answers[i].err = err
		}
		return answers
	}
	var unknown []int
	for i, cmd := range c.exec(ctx, calls, publish, func(s script) (string, string) { return "evalsha", s.sha }) {
		answers[i].values, answers[i].err = cmd.Int64Slice()
		if redis.HasErrorPrefix(answers[i].err, "NOSCRIPT") {
			unknown = append(unknown, i)
		}
	}
	if len(unknown) == 0 {
		return answers
	}
	again := make([]call, len(unknown))
	for i, at := range unknown {
		again[i] = calls[at]
	}
	for i, cmd := range c.exec(ctx, again, publish, func(s script) (string, string) { return "eval", s.source }) {
		answers[unknown[i]].values, answers[unknown[i]].err = cmd.Int64Slice()
	}
	return answers
}

func (c *Client) exec(ctx context.Context, calls []call, publish string, code func(script) (name, code string)) []once {
	pipe := c.rdb.Pipeline()
	cmds := make([]once, len(calls))
	for i, cl := range calls {
		name, text := code(cl.script)
		cmds[i] = cl.command(ctx, name, text, publish)
		_ = pipe.Process(ctx, cmds[i]) // queues it
	}
	_, err := pipe.Exec(ctx) // the first one; each command has its own
	c.topology.Doubt(err)
	return cmds
}
