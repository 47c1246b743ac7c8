package reply

import (
	"errors"
	"fmt"
	"io"
	"net"
	"testing"

	"github.com/redis/go-redis/v9"
)

// said is an answer of a server.
type said string

func (e said) Error() string { return string(e) }
func (said) RedisError()     {}

func TestClassification(t *testing.T) {
	refused := &net.OpError{Op: "dial", Err: errors.New("refused")}
	for _, tt := range []struct {
		err                            error
		isReply, transient, mayHaveRun bool
	}{
		{nil, false, false, false},
		// What was not answered, and may have run.
		{io.EOF, false, true, true},
		{&net.OpError{Op: "read", Err: errors.New("reset")}, false, true, true},
		// What never left the process.
		{refused, false, false, false},
		{fmt.Errorf("wrapped: %w", refused), false, false, false},
		{redis.ErrPoolTimeout, false, true, false},
		{redis.ErrPoolExhausted, false, false, false},
		{redis.ErrClosed, false, false, false},
		// What was answered.
		{said("LOADING Redis is loading the dataset in memory"), true, true, false},
		{said("READONLY You can't write against a read only replica."), true, true, false},
		{fmt.Errorf("wrapped: %w", said("MOVED 3999 127.0.0.1:6381")), true, true, false},
		{said("BUSY Redis is busy running a script."), true, true, false},
		{said("BUSYGROUP Consumer Group name already exists"), true, false, false},
		{said("ERR max number of clients reached"), true, true, false},
		{said("ERR Script attempted to access a non local key in a cluster node script: f00, on @user_script:5."), true, true, false},
		{said("WRONGTYPE Operation against a key"), true, false, false},
		{said("NOPERM this user has no permissions"), true, false, false},
	} {
		if got := IsReply(tt.err); got != tt.isReply {
			t.Errorf("IsReply(%v) = %v, want %v", tt.err, got, tt.isReply)
		}
		if got := Transient(tt.err); got != tt.transient {
			t.Errorf("Transient(%v) = %v, want %v", tt.err, got, tt.transient)
		}
		if got := MayHaveRun(tt.err); got != tt.mayHaveRun {
			t.Errorf("MayHaveRun(%v) = %v, want %v", tt.err, got, tt.mayHaveRun)
		}
	}
}
