package checkup

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"
)

// rightsText has the lines of docs/security.md, each with a comment that names the feature.
//
//go:embed rights.txt
var rightsText string

// feature is a purpose of a user of Redis.
type feature struct {
	name  string
	words []string // +command, ~key and &channel, as ACL SETUSER takes them
}

// clusterFeature is a part of the name of what only a cluster needs.
const clusterFeature = "cluster"

func features() (all []feature) {
	name := ""
	for line := range strings.Lines(rightsText) {
		line = strings.TrimSpace(line)
		if comment, ok := strings.CutPrefix(line, "# "); ok {
			name = comment
			continue
		}
		words := strings.Fields(line)
		if len(words) > 3 {
			all = append(all, feature{name, words[3:]}) // ACL SETUSER name
		}
	}
	return all
}

// The parts of a question for which a lock's key, and a channel or key of the feature, are put in.
const (
	hereKey     = "\x00key"
	hereChannel = "\x00channel"
)

// questions have each command with arguments that it takes. None of them is run.
var questions = map[string][]any{
	"evalsha": {"0000000000000000000000000000000000000000", 1, hereKey}, "eval": {"return 1", 1, hereKey}, "exists": {hereKey}, "type": {hereKey},
	"del": {hereKey}, "unlink": {hereKey}, "pexpire": {hereKey, 1000}, "pttl": {hereKey}, "persist": {hereKey}, "time": {}, "ping": {}, "scan": {0}, "dbsize": {},
	"hexists": {hereKey, "f"}, "hget": {hereKey, "f"}, "hmget": {hereKey, "f"}, "hset": {hereKey, "f", 1}, "hsetnx": {hereKey, "f", 1},
	"hdel": {hereKey, "f"}, "hgetall": {hereKey}, "hkeys": {hereKey}, "hlen": {hereKey}, "hscan": {hereKey, 0}, "hrandfield": {hereKey, 1},
	"get": {hereKey}, "getex": {hereKey}, "set": {hereKey, 1}, "mget": {hereKey}, "incr": {hereKey}, "incrby": {hereKey, 1}, "decr": {hereKey}, "decrby": {hereKey, 1}, "strlen": {hereKey}, "hstrlen": {hereKey, "f"}, "xadd": {hereKey, "*", "f", 1}, "xrevrange": {hereKey, "+", "-"},
	"lindex": {hereKey, 0}, "llen": {hereKey}, "lpop": {hereKey}, "lpos": {hereKey, "m"}, "lrange": {hereKey, 0, 0}, "lrem": {hereKey, 0, "m"}, "rpush": {hereKey, "m"},
	"zadd": {hereKey, 1, "m"}, "zcard": {hereKey}, "zcount": {hereKey, 0, 1}, "zincrby": {hereKey, 1, "m"}, "zrange": {hereKey, 0, 0}, "zrangebyscore": {hereKey, 0, 1},
	"zrem": {hereKey, "m"}, "zremrangebyrank": {hereKey, 0, 0}, "zremrangebyscore": {hereKey, 0, 1}, "zscore": {hereKey, "m"},
	"publish": {hereChannel, 0}, "subscribe": {hereChannel}, "unsubscribe": {hereChannel}, "spublish": {hereChannel, 0}, "ssubscribe": {hereChannel}, "sunsubscribe": {hereChannel},
	"pubsub|numsub": {hereChannel}, "pubsub|channels": {}, "pubsub|shardchannels": {}, "pubsub|shardnumsub": {hereChannel}, "cluster|slots": {}, "command": {}, "role": {}, "wait": {1, 1},
}

// standing is a word of a line with a key in place of the documented prefix, order:, in braces where the word has one and the key has none.
// Names of the word may go on behind that if more is true. A word without the prefix is not ok.
func standing(word, key string) (name string, more, ok bool) {
	begin, ok := strings.CutSuffix(word, "order:*")
	begin, inner, more := strings.Cut(begin, "{")
	key = inner + key
	if more && (strings.HasSuffix(begin, "__") || !strings.Contains(key, "{")) { // a latch's channel has braces around any name
		key = "{" + key + "}"
	}
	return begin + key, more, ok
}

// sample is a name that a pattern of a line stands for.
func sample(pattern, key string) string {
	name, more, ok := standing(pattern, key)
	switch {
	case !ok:
		return strings.TrimSuffix(pattern, "*") + key
	case more:
		return name + ":timeout"
	}
	return name
}

// question is what has to be allowed for a word, and the word that makes it so.
type question struct {
	word string
	args []any
}

// asked are the questions of a feature.
func (f feature) asked(key string) (all []question) {
	channel, keyCommand := "", "evalsha"
	for _, word := range f.words {
		if pattern, ok := strings.CutPrefix(word, "&"); ok {
			channel = sample(pattern, key)
		}
		if word == "+exists" {
			keyCommand = "exists"
		}
	}
	for _, word := range f.words {
		switch word[0] {
		case '+':
			all = append(all, question{word, command(word[1:], key, channel)})
		case '~':
			all = append(all, question{word, command(keyCommand, sample(word[1:], key), "")})
		case '&':
			all = append(all, question{word, command("publish", key, sample(word[1:], key))})
		}
	}
	return all
}

func command(name, key, channel string) []any {
	var args []any
	for part := range strings.SplitSeq(name, "|") {
		args = append(args, part)
	}
	for _, arg := range questions[name] {
		switch arg {
		case hereKey:
			arg = key
		case hereChannel:
			arg = channel
		}
		args = append(args, arg)
	}
	return args
}

// rights looks for what this user may do with locks, without doing it.
func (s *server) rights() {
	user := s.rdb.Options().Username
	if user == "" {
		user = "default"
	}
	if name, err := s.do("acl", "whoami").Text(); err == nil {
		user = name
	}
	ask, how, err := s.asker(user)
	if err != nil {
		s.report(Unknown, "rights", "this user may ask neither ACL DRYRUN nor MULTI, and so not what it may do", "ACL SETUSER "+user+" +multi +discard, or ask as an administrator")
		return
	}
	s.report(OK, "user", fmt.Sprintf("%s; rights on the lock %q, found out by %s", user, s.o.Key, how), "")
	none := true
	var lacking []Finding
	for _, f := range features() {
		if s.node == "" && strings.Contains(f.name, clusterFeature) {
			continue
		}
		missing, err := s.missing(f, ask)
		switch {
		case err != nil:
			s.report(Unknown, "rights", f.name+": "+err.Error(), "")
		case len(missing) == 0:
			none = false
			s.report(OK, "rights", f.name, "")
		default:
			lacking = append(lacking, Finding{Warn, "rights", s.node, "not for " + f.name, "ACL SETUSER " + user + " " + strings.Join(missing, " ")})
		}
	}
	for _, f := range lacking {
		if none {
			f.Level = Fail
		}
		s.o.Report(f)
	}
}

// missing returns the words without which the feature can't be used. Some are of the documented prefix, and become the key's.
func (s *server) missing(f feature, ask asker) (words []string, err error) {
	all := f.asked(s.o.Key)
	refusals, err := ask(all)
	if err != nil {
		return nil, err
	}
	for i, q := range all {
		kind := refusals[i]
		if kind == 0 || kind != q.word[0] { // a key's refusal is the affair of the key's own word
			continue
		}
		words = append(words, concrete(q.word, s.o.Key))
	}
	return words, nil
}

// concrete is a word with the key in place of the documented prefix.
func concrete(word, key string) string {
	name, more, ok := standing(word, key)
	switch {
	case !ok:
		return word
	case more:
		return name + "*"
	}
	return name
}

// asker reports for each question what is refused: '+' the command, '~' a key, '&' a channel, and 0 nothing.
type asker func([]question) ([]byte, error)

// asker returns the gentlest way to ask that this user has.
func (s *server) asker(user string) (ask asker, how string, err error) {
	err = s.do("acl", "dryrun", user, "ping").Err()
	if err == nil {
		return func(all []question) ([]byte, error) { return s.dryRun(user, all) }, "ACL DRYRUN", nil
	}
	if _, err = s.queued([]question{{"+ping", []any{"ping"}}}); err == nil {
		return s.queued, "MULTI and DISCARD", nil
	}
	return nil, "", err
}

func (s *server) dryRun(user string, all []question) ([]byte, error) {
	pipe := s.rdb.Pipeline()
	for _, q := range all {
		pipe.Do(s.ctx, append([]any{"acl", "dryrun", user}, q.args...)...)
	}
	cmds, err := s.exec(pipe)
	if err != nil {
		return nil, err
	}
	refusals := make([]byte, len(all))
	for i, cmd := range cmds {
		if text, err := cmd.(*redis.Cmd).Text(); err == nil && text != "OK" {
			refusals[i] = refused(text)
		}
	}
	return refusals, nil
}

// queued has the commands checked as parts of a transaction, which then is given up.
func (s *server) queued(all []question) ([]byte, error) {
	conn := s.rdb.Conn()
	defer conn.Close()
	pipe := conn.Pipeline()
	pipe.Do(s.ctx, "multi")
	for _, q := range all {
		pipe.Do(s.ctx, q.args...)
	}
	pipe.Do(s.ctx, "discard")
	cmds, err := s.exec(pipe)
	if err != nil {
		return nil, err
	}
	if err := cmds[0].Err(); err != nil {
		return nil, err
	}
	if err := cmds[len(cmds)-1].Err(); err != nil {
		return nil, err
	}
	refusals := make([]byte, len(all))
	for i, cmd := range cmds[1 : len(cmds)-1] {
		if err := cmd.Err(); denied(err) {
			refusals[i] = refused(err.Error())
		}
	}
	return refusals, nil
}

// exec sends a pipeline. The server's answer to a single command is that command's error, and not an error of exec.
func (s *server) exec(pipe redis.Pipeliner) ([]redis.Cmder, error) {
	ctx, cancel := context.WithTimeout(s.ctx, s.o.Timeout)
	defer cancel()
	cmds, err := pipe.Exec(ctx)
	if _, said := errors.AsType[redis.Error](err); err != nil && !said {
		return nil, err
	}
	return cmds, nil
}

// refused reads what a refusal is about. Versions word it in their own ways.
func refused(text string) byte {
	switch text = strings.ToLower(text); {
	case strings.Contains(text, "channel"):
		return '&'
	case strings.Contains(text, "key"):
		return '~'
	}
	return '+'
}
