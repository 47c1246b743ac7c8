package reply

import (
	"errors"
	"net"
	"strings"

	"github.com/redis/go-redis/v9"
)

// A Class says what an error of a question means to who has asked it.
type Class struct {
	Type      string // for telemetry: error.type
	Repeat    bool   // the same question may get an answer soon
	Elsewhere bool   // this connection leads to the wrong server, or to one that is not ready: a fresh one may lead to the right one
	Refused   bool   // the same question is refused until somebody changes the program, the server or the data
	Incurable bool   // and no operator of the server can see to it: the key holds something else, or the server has no such command
}

// The classes of what a server says instead of an answer. In none of them has a command or script changed anything: a server
// refuses a script as a whole, or at its first write.
var (
	elsewhere  = Class{Type: "not_ready", Repeat: true, Elsewhere: true}
	noReplicas = Class{Type: "no_replicas", Repeat: true, Elsewhere: true}
	notReady   = Class{Type: "not_ready", Repeat: true}
	noMemory   = Class{Type: "no_memory"}
	noDisk     = Class{Type: "no_disk"}
	noRight    = Class{Type: "refused", Refused: true}
	wrongType  = Class{Type: "refused", Refused: true, Incurable: true}
	other      = Class{Type: "_OTHER"}
)

// said is the one table of these answers. testdata/answers has what each version of each server really says; a test classifies it all.
// The code comes first, or behind other words where a script met the answer: servers before version 7 wrap it.
var said = []struct {
	words string
	class Class
}{
	{"READONLY", elsewhere}, {"MASTERDOWN", elsewhere}, {"LOADING", elsewhere}, {"NOREPLICAS", noReplicas},
	{"CLUSTERDOWN", notReady}, {"TRYAGAIN", notReady}, {"MOVED", notReady}, {"ASK", notReady}, {"BUSY", notReady}, {"ERR max number of clients", notReady},
	// A key is missing while its slot is on the move.
	{"ttempted to access a non local key", notReady}, {"ndeclared keys were accessed during rehashing of the slot", notReady},
	{"OOM", noMemory}, {"MISCONF", noDisk},
	{"NOPERM", noRight}, {"NOAUTH", noRight}, {"WRONGPASS", noRight}, {"invalid password", noRight}, {"The user executing the script can't", noRight},
	{"WRONGTYPE", wrongType}, {"is not a number", wrongType}, {"is not an integer", wrongType}, // and the scripts', too
	{oneNode{}.Error(), wrongType},
	{"unknown command", wrongType}, {"Unknown Redis command", wrongType},
}

// Classify returns the class of err, which is not nil. What no server has said is an answer that did not come.
func Classify(err error) Class {
	reply, ok := errors.AsType[redis.Error](err)
	if !ok {
		return Class{Type: "no_answer", Repeat: MayHaveRun(err) || errors.Is(err, redis.ErrPoolTimeout)}
	}
	text := reply.Error()
	for _, s := range said {
		if says(text, s.words) {
			return s.class
		}
	}
	return other
}

// says reports whether a server's text is that of a table's row.
func says(text, words string) bool {
	code, _, _ := strings.Cut(words, " ")
	if code != strings.ToUpper(code) || code == "ERR" {
		return strings.Contains(text, words)
	}
	if rest, ok := strings.CutPrefix(text, words); ok {
		return rest == "" || rest[0] == ' '
	}
	return strings.Contains(text, "user_script") && (strings.Contains(text, "-"+words+" ") || strings.Contains(text, ": "+words+" "))
}

// oneNode is what a client of one server is told that leads to a cluster.
type oneNode struct{}

func (oneNode) Error() string {
	return "this server is one node of a Redis Cluster: name that by a URL with addr, redis://host1:6379?addr=host2:6379, or by a redis.ClusterClient"
}

// RedisError makes it an answer of the server.
func (oneNode) RedisError() {}

// Alone returns err as a client of one server is to see it. Such a client can't follow to another node of a cluster.
func Alone(err error) error {
	if err != nil && (redis.HasErrorPrefix(err, "MOVED") || redis.HasErrorPrefix(err, "CROSSSLOT")) {
		return oneNode{}
	}
	return err
}

// IsReply reports whether err is what a server said, so that the server is there.
func IsReply(err error) bool {
	_, ok := errors.AsType[redis.Error](err)
	return ok
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
