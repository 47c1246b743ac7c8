// Package reply reads the answers of scripts, and classifies what go-redis returns instead of one. It looks at the type of an error and, for what a
// server said, at its words; it never looks at the text of anything else.
package reply

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
)

// transient are the beginnings of what a server says when it is not ready now and may be soon.
var transient = [...]string{
	"LOADING", "READONLY", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "MOVED", "ASK", "BUSY ", "ERR max number of clients",
}

// transientInScripts is the same for what a script met. It need not come first: servers before version 7 wrap it in other words.
var transientInScripts = [...]string{
	// A key is missing while its slot is on the move, as Redis 7 says that and Valkey 8.
	"attempted to access a non local key",
	"undeclared keys were accessed during rehashing of the slot",
	"-READONLY ",
}

// least is how many integers an answer has for those who read it.
const least = 3

// Ints returns what a script has answered to cmd, a list of integers: at least three, of which those that the script did not
// give are 0. A lone n stands for {1, n}: a list costs Redis half a microsecond more, a fifth of a short script. All else, and an
// empty list, is an error. They are appended to room, which the answers to many commands can share.
func Ints(cmd *redis.Cmd, room *[]int64) ([]int64, error) {
	if n, ok := cmd.Val().(int64); ok && cmd.Err() == nil {
		from := len(*room)
		*room = append(*room, 1, n, 0)
		return slices.Clip((*room)[from:]), nil
	}
	list, err := cmd.Slice()
	if err != nil {
		return nil, err
	}
	return ints(list, room)
}

// Mixed returns what a script has answered to cmd, integers as Ints has them, and behind them a list of something else.
func Mixed(cmd *redis.Cmd, room *[]int64) (values []int64, rest []any, err error) {
	list, err := cmd.Slice()
	if err != nil {
		return nil, nil, err
	}
	last := max(0, len(list)-1)
	if len(list) > 0 {
		var ok bool
		if rest, ok = list[last].([]any); !ok {
			return nil, nil, fmt.Errorf("a script answered %T where a list was expected", list[last])
		}
	}
	values, err = ints(list[:last], room)
	return values, rest, err
}

func ints(list []any, room *[]int64) ([]int64, error) {
	if len(list) == 0 {
		return nil, errors.New("a script answered nothing")
	}
	from := len(*room)
	*room = slices.Grow(*room, max(len(list), least))
	for _, v := range list {
		n, ok := v.(int64)
		if !ok {
			return nil, fmt.Errorf("a script answered %T where an integer was expected", v)
		}
		*room = append(*room, n)
	}
	for range least - len(list) {
		*room = append(*room, 0)
	}
	return slices.Clip((*room)[from:]), nil
}

// IsReply reports whether err is what a server said, so that the server is there.
func IsReply(err error) bool {
	_, ok := errors.AsType[redis.Error](err)
	return ok
}

// Transient reports whether the same question may get an answer soon: nothing was answered, or the server said that it was
// not ready. A connection that could not be made is not transient, because go-redis has tried that several times by then.
func Transient(err error) bool {
	said, ok := errors.AsType[redis.Error](err)
	if !ok {
		return MayHaveRun(err) || errors.Is(err, redis.ErrPoolTimeout)
	}
	text := said.Error()
	return slices.ContainsFunc(transient[:], func(beginning string) bool { return strings.HasPrefix(text, beginning) }) ||
		slices.ContainsFunc(transientInScripts[:], func(words string) bool { return strings.Contains(text, words) })
}

// refused is what a server says when it will never do what it was asked. It need not come first, either.
var refused = [...]string{
	"WRONGTYPE", "is not a number", "is not an integer", // the key holds something else; see the scripts, too
	"NOPERM", "The user executing the script can't", "NOAUTH", "WRONGPASS", "invalid password",
	"unknown command", "Unknown Redis command",
}

// Refused reports whether the same question would be refused until somebody changes the program, the server or the data. What a
// server may say for other reasons, such as a lack of memory, is no refusal.
func Refused(err error) bool {
	said, ok := errors.AsType[redis.Error](err)
	return ok && !Transient(err) && slices.ContainsFunc(refused[:], func(word string) bool {
		return strings.Contains(said.Error(), word)
	})
}

// Curable reports whether a server may do later what it refuses now, when an operator has seen to it: a permission, a disk, memory or a
// replica is missing. It can't be cured that the key holds something else, or that the server does not have a command.
func Curable(err error) bool {
	said, ok := errors.AsType[redis.Error](err)
	return ok && !slices.ContainsFunc([]string{"WRONGTYPE", "is not a number", "is not an integer", "unknown command", "Unknown Redis command"}, func(word string) bool {
		return strings.Contains(said.Error(), word)
	})
}

// MayHaveRun reports whether the server may have run a command whose failure err is. It is false where the command was
// answered, and where it never left this process.
func MayHaveRun(err error) bool {
	if err == nil || IsReply(err) {
		return false
	}
	if errors.Is(err, redis.ErrPoolTimeout) || errors.Is(err, redis.ErrPoolExhausted) || errors.Is(err, redis.ErrClosed) {
		return false // without a connection
	}
	op, ok := errors.AsType[*net.OpError](err)
	return !ok || op.Op != "dial"
}
