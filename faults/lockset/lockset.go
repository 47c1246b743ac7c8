// Package lockset is the workload with which Jepsen tests locks: a set in a store that each holder of a lock reads, waits, and writes
// back with one element more. When two hold the lock at once, elements are lost. The store is not the server of the lock, and can
// check fencing tokens.
package lockset

import (
	"context"
	_ "embed" // the scripts
	"errors"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/faults/history"
)

var (
	//go:embed read.lua
	readText string
	//go:embed write.lua
	writeText string

	read, write = redis.NewScript(readText), redis.NewScript(writeText)
)

// ErrStale says that the store has seen a higher token.
var ErrStale = errors.New("lockset: the token is stale")

// A Set is a key of a Redis that no fault strikes, reached by a client of its own.
type Set struct {
	rdb redis.UniversalClient
	key string
}

// New names a set. It begins empty.
func New(rdb redis.UniversalClient, key string) Set { return Set{rdb, key} }

// Add adds element under the lock of call: it reads the set, waits, and writes it back. The token is that of a fenced
// lock; with 0, nothing is checked. The store's answer becomes an event of call. Elements have no line breaks, and are
// distinct.
func (s Set) Add(ctx context.Context, call *history.Call, token int64, element string, wait func()) error {
	since := history.Now()
	elements, err := s.read(ctx, token)
	if err == nil {
		wait()
		since = history.Now()
		err = s.write(ctx, token, append(elements, element))
	}
	if err == nil || errors.Is(err, ErrStale) {
		call.Write(since, token, element, err == nil)
	}
	return err
}

// Final notes in log what the set holds at the end. The lock that guarded it has the keys.
func (s Set) Final(ctx context.Context, log *history.Log, keys ...string) error {
	elements, err := s.read(ctx, 0)
	if err == nil {
		log.Note(history.Event{Op: history.Final, Keys: keys, Elements: elements})
	}
	return err
}

func (s Set) read(ctx context.Context, token int64) ([]string, error) {
	text, err := read.Run(ctx, s.rdb, []string{s.key}, token).Text()
	if errors.Is(err, redis.Nil) {
		return nil, ErrStale
	}
	if err != nil {
		return nil, err
	}
	return slices.Collect(strings.FieldsFuncSeq(text, func(r rune) bool { return r == '\n' })), nil
}

func (s Set) write(ctx context.Context, token int64, elements []string) error {
	accepted, err := write.Run(ctx, s.rdb, []string{s.key}, token, strings.Join(elements, "\n")).Bool()
	if err == nil && !accepted {
		return ErrStale
	}
	return err
}
