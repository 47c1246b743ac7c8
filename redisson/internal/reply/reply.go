// Package reply classifies what go-redis returns instead of an answer. It looks at the type of an error and, for what a
// server said, at its first word; it never looks at the text of anything else.
package reply

import (
	"errors"
	"net"
	"strings"

	"github.com/redis/go-redis/v9"
)

// transient are the beginnings of what a server says when it is not ready now and may be soon.
var transient = [...]string{
	"LOADING", "READONLY", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "MOVED", "ASK", "BUSY ", "ERR max number of clients",
	"ERR Script attempted to access a non local key", // it is missing while its slot is on the move
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
	for _, beginning := range transient {
		if strings.HasPrefix(said.Error(), beginning) {
			return true
		}
	}
	return false
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
