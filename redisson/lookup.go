package redisson

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/latchkey-go/latchkey/internal/reply"
	"github.com/latchkey-go/latchkey/redisson/internal/pubsub"
)

// lookedTogether is how many objects a server is asked about at a time, with a script for each: so others are served in between.
const lookedTogether = 100

// SearchOption changes one thing about a [Client.Objects] or [Client.InspectKeys].
type SearchOption func(*lookup)

// Progress says how far somebody has come who looks at objects.
type Progress struct {
	// Keys is how many keys were looked at, of Total. In a search, Total is how many there were in Redis when it began, at all masters, and
	// both are 0 where Redis does not say. Keys is reckoned from the number of steps, so it is nearly right; it is Total in the end, if all
	// masters have answered.
	Keys, Total int64
	// Questions is how often Redis was asked, but for what goes through all keys by SCAN, and through all channels. The scripts for up to 100
	// objects travel together and are one question.
	Questions int
}

// OnProgress calls f after each step, in the goroutine that ranges over the objects. In a search it costs a question for each master.
func OnProgress(f func(Progress)) SearchOption {
	return func(in *lookup) { in.progress = f }
}

// InspectKeys is [Client.InspectKey] for many keys, in few round trips: one for each hundred keys at a master, and one for the names of their
// clients. The objects come in any order. An error comes with an Object with only a Key, or, for all keys at a master that does not answer, with one
// without data.
func (c *Client) InspectKeys(ctx context.Context, keys []string, opts ...SearchOption) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		in := c.newLookup(ctx, opts)
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

// lookup looks at many objects for somebody.
type lookup struct {
	c        *Client
	ctx      context.Context
	who      map[string]Identity // of clients that were asked for, by id; zero for one that says nothing
	progress func(Progress)      // may be nil
	done     Progress
}

func (c *Client) newLookup(ctx context.Context, opts []SearchOption) *lookup {
	in := &lookup{c: c, ctx: ctx, who: map[string]Identity{}}
	for _, opt := range opts {
		opt(in)
	}
	return in
}

// ask asks one question.
func (in *lookup) ask(cl call) answer {
	in.done.Questions++
	return in.c.query(in.ctx, cl)
}

// advance notes that so many keys were looked at in all.
func (in *lookup) advance(keys int64) {
	in.done.Keys = keys
	if in.progress != nil {
		in.progress(in.done)
	}
}

// objects looks at keys, one master after the other. Its errors are as those of InspectKeys.
func (in *lookup) objects(keys []string) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		for _, keys := range pubsub.ByMaster(in.c.topology, keys, func(key string) string { return key }) {
			for keys := range slices.Chunk(keys, lookedTogether) {
				found, errs := in.look(keys)
				for i, o := range found {
					if !yield(o, errs[i]) {
						return
					}
				}
				if found[len(found)-1].Key == "" {
					break
				}
			}
		}
	}
}

// look looks at some keys of one master. An object without a key, the last one, comes with why it has not looked at the rest.
func (in *lookup) look(keys []string) (found []Object, errs []error) {
	calls := make([]call, len(keys))
	for i, key := range keys {
		calls[i] = inspectCall(key)
	}
	in.done.Questions++
	for i, a := range in.c.askAll(in.ctx, time.Now().Add(in.c.timeout), calls) {
		o, err := readObject(keys[i], a)
		down := err != nil && !reply.IsReply(err) && !errors.Is(err, errUnreadable) // so others would not be answered, either
		if err != nil && !down {
			o, err = Object{Key: keys[i]}, fmt.Errorf("redisson: a key could not be looked at: %w", err)
		}
		found, errs = append(found, o), append(errs, err)
		if down {
			break
		}
	}
	in.learn(found)
	return found, errs
}
