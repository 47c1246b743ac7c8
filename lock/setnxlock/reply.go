package setnxlock

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/latchkey-go/latchkey/lock"
	"github.com/redis/go-redis/v9"
)

// answer is what a script has said.
type answer struct {
	code int64
	left time.Duration // to live
	kind string        // type of the key
}

var errAnswer = errors.New("setnxlock: an answer that this package's scripts don't give")

// readAnswer reads the result of cmd.
func readAnswer(cmd *redis.Cmd) (a answer, err error) {
	list, err := cmd.Slice()
	if err != nil {
		return a, err
	}
	if len(list) == 0 {
		return a, errAnswer
	}
	code, ok := list[0].(int64)
	a.code = code
	switch {
	case !ok || code < otherType || code > yes:
		return a, errAnswer
	case len(list) == 1:
		return a, nil
	}
	switch v := list[1].(type) {
	case int64:
		a.left = time.Duration(v) * time.Millisecond
	case string:
		a.kind = v
	}
	return a, nil
}

// otherTypeError says that a key holds no string lock.
func otherTypeError(kind string) error {
	switch kind {
	case "hash":
		return fmt.Errorf("setnxlock: %w: the key holds a hash, as a lock of Redisson does, and no string: share it by package redisson, or take another key", lock.ErrRefused)
	case "":
		return fmt.Errorf("setnxlock: %w: the key holds something else than a string: take another key", lock.ErrRefused)
	}
	return fmt.Errorf("setnxlock: %w: the key holds a %s and no string: take another key", lock.ErrRefused, kind)
}

// Redis' errors are text. Most begin with a code; those of scripts have it further on in servers before version 7, and some have none.
var (
	// transient is what a server says when it is not ready now and may be soon.
	transient = []string{"LOADING", "READONLY", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "MOVED", "ASK", "BUSY ", "ERR max number of clients"}
	// transientInScripts says the same from within a script: "attempted…" while its slot is on the move.
	transientInScripts = []string{"attempted to access a non local key", "-READONLY "}
	// refusals are what a server says when it will never do what it was asked.
	refusals = []string{"NOPERM", "The user executing the script can't", "NOAUTH", "WRONGPASS", "invalid password", "unknown command", "Unknown Redis command"}
)

// isTransient reports whether the same question may get an answer soon: its connection broke, or the server said that it was not
// ready. It is false for a connection that could not be made, because go-redis has tried that several times by then.
func isTransient(err error) bool {
	said, ok := errors.AsType[redis.Error](err)
	if !ok {
		return mayHaveRun(err)
	}
	text := said.Error()
	return slices.ContainsFunc(transient, func(code string) bool { return strings.HasPrefix(text, code) }) ||
		slices.ContainsFunc(transientInScripts, func(words string) bool { return strings.Contains(text, words) })
}

// isRefusal reports whether a server will say the same until somebody changes the program, the server or the data.
func isRefusal(err error) bool {
	said, ok := errors.AsType[redis.Error](err)
	return ok && !isTransient(err) && slices.ContainsFunc(refusals, func(words string) bool { return strings.Contains(said.Error(), words) })
}

// mayHaveRun reports whether the server may have run a command whose failure err is: it was sent, or may have been, and not answered.
func mayHaveRun(err error) bool {
	if _, answered := errors.AsType[redis.Error](err); answered || err == nil {
		return false
	}
	if errors.Is(err, redis.ErrPoolTimeout) || errors.Is(err, redis.ErrPoolExhausted) || errors.Is(err, redis.ErrClosed) {
		return false // without a connection
	}
	op, ok := errors.AsType[*net.OpError](err)
	return !ok || op.Op != "dial"
}

// classify completes a failure for those who have to decide what to do about it.
func classify(err error) error {
	if isRefusal(err) {
		return fmt.Errorf("setnxlock: %w: %w", lock.ErrRefused, err)
	}
	return fmt.Errorf("setnxlock: %w", err)
}
