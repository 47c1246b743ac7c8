package reply

import (
	"errors"
	"io"
	"net"
	"strings"

	"github.com/redis/go-redis/v9"
)

// A Class is the meaning of a question's error for the asker.
type Class struct {
	Type      string // for telemetry: error.type
	Repeat    bool   // the same question may get an answer soon
	Elsewhere bool   // this connection leads to the wrong server, or to one that is not ready: a fresh one may lead to the right one
	Passes    bool   // a shortage, which somebody has to end, or which ends by itself later
	Refused   bool   // the same question is refused until somebody changes the program, the server or the data
	Incurable bool   // and no operator of the server can see to it: the key holds something else, or the server has no such command
	Apart     bool   // there may be an answer without a key that the question can do without

	NoScript, NoRight, NoCommand, WrongType, Slot bool // the causes that somebody acts on; Slot: another node of a cluster has it, or several have
}

// said is the one table of what servers say instead of an answer, by codes, in capitals, and by words, whose case
// differs between servers. testdata/answers has the words of each server; a test classifies them all.
// docs/operations/redis.md has the table for operators.
//
// Nothing has run then: a server refuses a script as a whole, or at its first write, and our scripts look at all keys before they write. Only
// a missing right and a mistake can end a script that has written.
var said = []struct {
	texts string
	class Class
}{
	{"READONLY|MASTERDOWN|LOADING|UNBLOCKED", Class{Type: "not_ready", Repeat: true, Elsewhere: true}}, // the last is to WAIT, after a script that has run: the master was demoted
	{"NOREPLICAS", Class{Type: "no_replicas", Repeat: true, Elsewhere: true}},
	{"TRYAGAIN|ASK", Class{Type: "not_ready", Repeat: true, Apart: true}},
	{"CLUSTERDOWN|BUSY|max number of clients", Class{Type: "not_ready", Repeat: true}},
	{"MOVED", Class{Type: "not_ready", Repeat: true, Slot: true}},
	{"access a non local key|accessed during rehashing of the slot", Class{Type: "not_ready", Repeat: true}}, // a key is missing
	{"OOM", Class{Type: "no_memory", Passes: true}},
	{"MISCONF", Class{Type: "no_disk", Passes: true}},
	{"NOSCRIPT", Class{Type: "_OTHER", NoScript: true}},
	{"NOAUTH|WRONGPASS|invalid password", Class{Type: "refused", Refused: true}},
	{"NOPERM|the user executing the script can't|acl failure in script", Class{Type: "refused", Refused: true, NoRight: true}},
	{"WRONGTYPE", Class{Type: "refused", Refused: true, Incurable: true, WrongType: true}},
	{"unknown command|unknown redis command|unknown subcommand", Class{Type: "refused", Refused: true, Incurable: true, NoCommand: true}},
	{"CROSSSLOT", Class{Type: "refused", Refused: true, Incurable: true, Slot: true}},
	{"one node of a redis cluster|is not a number|is not an integer|is not a valid float", Class{Type: "refused", Refused: true, Incurable: true}}, // also our scripts' words
	{"EXECABORT|script killed by user", Class{Type: "_OTHER"}},                                                                                     // a transaction's cause stands above
}

// Classify returns the class of err, which is not nil. An error that no server has sent is an answer that did not come.
func Classify(err error) Class {
	reply, ok := errors.AsType[redis.Error](err)
	if !ok {
		return Class{Type: "no_answer", Repeat: MayHaveRun(err) || errors.Is(err, redis.ErrPoolTimeout)}
	}
	class, _ := find(reply.Error())
	return class
}

// find returns the class of a server's text, and whether the table has it.
func find(text string) (class Class, known bool) {
	for _, s := range said {
		for words := range strings.SplitSeq(s.texts, "|") {
			if says(text, words) {
				return s.class, true
			}
		}
	}
	return Class{Type: "_OTHER"}, false
}

// says reports whether a server's text is that of a row. A code can come behind other words, in a transaction or where a script met it:
// servers before version 7 wrap it.
func says(text, words string) bool {
	if words == strings.ToLower(words) {
		return strings.Contains(strings.ToLower(text), words)
	}
	wrapped := strings.Contains(text, "user_script") || strings.HasPrefix(text, "EXECABORT ")
	return strings.HasPrefix(text+" ", words+" ") || wrapped && (strings.Contains(text, "-"+words+" ") || strings.Contains(text, ": "+words+" "))
}

// oneNode is the error of a client of one server that leads to a cluster.
type oneNode struct{}

func (oneNode) Error() string {
	return "this server is one node of a Redis Cluster: name that by a URL with addr, redis://host1:6379?addr=host2:6379, or by a redis.ClusterClient"
}

// RedisError makes it an answer of the server.
func (oneNode) RedisError() {}

// Alone returns err in the words for a client of one server. Such a client can't follow to another node of a cluster.
func Alone(err error) error {
	if err != nil && Classify(err).Slot {
		return oneNode{}
	}
	return err
}

// IsReply reports whether a server has sent err, so that the server is there.
func IsReply(err error) bool {
	_, ok := errors.AsType[redis.Error](err)
	return ok
}

// Broken reports whether a connection has ended without an answer that was there before.
func Broken(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return errors.Is(err, io.EOF) || ok && op.Op != "dial" && !op.Timeout()
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
