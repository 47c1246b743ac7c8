package redisson

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/latchkey-go/latchkey/internal/reply"
	"github.com/latchkey-go/latchkey/redisson/internal/pubsub"
)

const (
	// lookedTogether is how many objects a server looks at in one script, at most: few enough to take it a millisecond or two. It looks at
	// fewer if they are large.
	lookedTogether = 100
	// mostNamed bounds the bytes of their keys.
	mostNamed = 64 << 10
)

// SearchOption changes one thing about a [Client.Objects] or [Client.InspectKeys].
type SearchOption interface{ apply(*inquiry) }

type searchOption func(*inquiry)

func (f searchOption) apply(in *inquiry) { f(in) }

// Progress says how far somebody has come who looks at objects.
type Progress struct {
	// Keys is how many keys were looked at, of Total. In a search, Total is how many there were in Redis when it began, at all masters, and
	// both are 0 where Redis does not say. Keys is reckoned from the number of steps, so it is nearly right; it is Total in the end, if all
	// masters have answered.
	Keys, Total int64
	// Questions is how many scripts Redis was asked to run, but for those that go through all keys by SCAN.
	Questions int
}

// OnProgress calls f after each step, in the goroutine that ranges over the objects. In a search it costs a question for each master.
func OnProgress(f func(Progress)) SearchOption {
	return searchOption(func(in *inquiry) { in.progress = f })
}

// InspectKeys is [Client.InspectKey] for many keys, in few questions: Redis looks at up to 100 of them in one script, and at fewer if they
// have many holders. The objects come in any order. An error comes with an Object with only a Key, or, for all keys at a master that
// does not answer, with one without data.
func (c *Client) InspectKeys(ctx context.Context, keys []string, opts ...SearchOption) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		in := c.newInquiry(ctx, opts)
		in.done.Total = int64(len(keys))
		var good []string
		for _, key := range keys {
			if err := c.checkKey(key); err == nil {
				good = append(good, key)
			} else if !yield(Object{Key: key}, err) {
				return
			}
		}
		for o, err := range in.objects(good) {
			if !yield(o, err) {
				return
			}
			in.advance(in.done.Keys + 1)
		}
	}
}

// inquiry looks at many objects for somebody.
type inquiry struct {
	c        *Client
	ctx      context.Context
	who      identities
	progress func(Progress) // may be nil
	done     Progress
}

func (c *Client) newInquiry(ctx context.Context, opts []SearchOption) *inquiry {
	in := &inquiry{c: c, ctx: ctx, who: identities{}}
	for _, opt := range opts {
		opt.apply(in)
	}
	return in
}

// ask asks one question.
func (in *inquiry) ask(cl call) answer {
	in.done.Questions++
	return in.c.query(in.ctx, cl)
}

// advance notes that so many keys were looked at in all.
func (in *inquiry) advance(keys int64) {
	in.done.Keys = keys
	if in.progress != nil {
		in.progress(in.done)
	}
}

// objects looks at keys, one master after the other. Its errors are as those of InspectKeys.
func (in *inquiry) objects(keys []string) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		for _, keys := range pubsub.ByMaster(in.c.topology, keys, func(key string) string { return key }) {
			for len(keys) > 0 {
				found, err := in.look(keys[:together(keys)])
				if err != nil {
					if !yield(Object{}, err) {
						return
					}
					break
				}
				for i := range found {
					if !yield(found[i].Object, found[i].err) {
						return
					}
				}
				keys = keys[len(found):]
			}
		}
	}
}

// together is how many of these keys are looked at together.
func together(keys []string) (n int) {
	for size := 0; n < min(len(keys), lookedTogether); n++ {
		if size += len(keys[n]); size > mostNamed && n > 0 {
			break
		}
	}
	return n
}

// looked is what there is at a key, or why that is not known.
type looked struct {
	Object
	err error
}

// look looks at some keys of one master: at as many as it looks at together, and at one at least.
func (in *inquiry) look(keys []string) (found []looked, err error) {
	a := in.ask(inspectCall(keys[0], keys...))
	switch {
	case a.Err != nil && !lasting(a.Err):
		return nil, a.Err
	case a.Err != nil: // because of one of them, perhaps
		a.List = make([]any, len(keys))
	case len(a.List) == 0 || len(a.List) > len(keys):
		return nil, errUnreadable
	}
	for i, answer := range a.List {
		one := looked{Object: Object{Key: keys[i]}}
		if answer == nil {
			one.Object, one.err = in.alone(keys[i])
		} else {
			one.Object, one.err = readObject(keys[i], answer)
		}
		switch {
		case one.err == nil:
		case !reply.IsReply(one.err) && !errors.Is(one.err, errUnreadable): // so others would not be answered, either
			return nil, one.err
		default:
			one.Object, one.err = Object{Key: keys[i]}, fmt.Errorf("redisson: a key could not be looked at: %w", one.err)
		}
		found = append(found, one)
	}
	objects := make([]*Object, len(found))
	for i := range found {
		objects[i] = &found[i].Object
	}
	in.who.learn(in, objects...)
	return found, nil
}

// alone looks at one key, whose error is its own.
func (in *inquiry) alone(key string) (Object, error) {
	a := in.ask(inspectCall(key, key))
	if a.Err == nil && len(a.List) != 1 {
		a.Err = errUnreadable
	}
	if a.Err != nil {
		return Object{}, a.Err
	}
	return readObject(key, a.List[0])
}
