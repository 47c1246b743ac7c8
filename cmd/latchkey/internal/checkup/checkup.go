// Package checkup looks for what is wrong with a Redis that keeps locks, and says what to type.
package checkup

import (
	"context"
	"strings"
	"time"

	"github.com/latchkey-go/latchkey/internal/reply"
	"github.com/redis/go-redis/v9"
)

// Level is how bad a finding is.
type Level string

// The levels. Unknown is for what this user may not ask.
const (
	OK      Level = "ok"
	Unknown Level = "skip"
	Warn    Level = "warn"
	Fail    Level = "fail"
)

// Finding is one line of the doctor's.
type Finding struct {
	Level Level  `json:"level"`
	Check string `json:"check"`          // a word
	Node  string `json:"node,omitempty"` // of a cluster
	Text  string `json:"text"`           // what was found
	Type  string `json:"type,omitempty"` // what to type, or to do
}

// Options set up a checkup.
type Options struct {
	// Key is the name of a lock for which rights are looked at. None is taken.
	Key string
	// Pings is how many questions the latency is measured with.
	Pings int
	// Timeout bounds each question.
	Timeout time.Duration
	// Report is called with each finding as soon as it is there.
	Report func(Finding)
}

// server is one server of those that are looked at.
type server struct {
	rdb  *redis.Client
	node string // its address, in a cluster
	o    Options
	ctx  context.Context
	info map[string]string
}

// Run looks at a server, the master that sentinels name, or all masters of a cluster. The error is that of the first question:
// without its answer there is nothing to look at.
func Run(ctx context.Context, rdb redis.UniversalClient, o Options) error {
	if c, ok := rdb.(*redis.ClusterClient); ok {
		return runCluster(ctx, c, o)
	}
	one, ok := rdb.(*redis.Client)
	if !ok {
		return errType
	}
	s := &server{rdb: one, o: o, ctx: ctx}
	if err := s.reach(); err != nil {
		return err
	}
	if info, err := s.do("info", "server").Text(); err == nil && parseInfo(info)["redis_mode"] == "sentinel" {
		s.report(Fail, "server", "this is a sentinel, which has no locks", "name what it watches: redis://HOST:PORT?master_name=NAME; SENTINEL MASTERS lists the names")
		return nil
	}
	s.look()
	if s.info["cluster_enabled"] == "1" {
		s.report(Fail, "cluster", "this server is one node of a cluster, which has the keys of its own slots only", "name it by a URL with addr: redis://host1:6379?addr=host2:6379")
		return nil
	}
	s.report(OK, "channels", "one server has classic channels", "")
	s.rights()
	return nil
}

func (s *server) report(level Level, check, text, do string) {
	s.o.Report(Finding{level, check, s.node, text, do})
}

// do asks one question.
func (s *server) do(args ...any) *redis.Cmd {
	ctx, cancel := context.WithTimeout(s.ctx, s.o.Timeout)
	defer cancel()
	cmd := redis.NewCmd(ctx, args...)
	_ = s.rdb.Process(ctx, cmd)
	return cmd
}

// reach asks for a sign of life, which each user may do who can do anything.
func (s *server) reach() error {
	err := s.do("ping").Err()
	if err != nil && !denied(err) {
		return err
	}
	return nil
}

// denied reports whether an error says that this user may not ask.
func denied(err error) bool { return err != nil && reply.Classify(err).NoRight }

// unknownCommand reports whether the server does not have a command, or has it under another name.
func unknownCommand(err error) bool {
	return err != nil && reply.Classify(err).NoCommand
}

// mayNot reports what could not be looked at.
func (s *server) mayNot(check, command string, err error) {
	do := "ask as a user with +" + strings.ToLower(strings.ReplaceAll(command, " ", "|"))
	switch {
	case unknownCommand(err):
		s.report(Unknown, check, "this server has no "+command+", as many that are rented: ask its provider", "")
	case denied(err):
		s.report(Unknown, check, "this user may not ask "+command, do)
	default:
		s.report(Fail, check, command+" failed: "+err.Error(), "")
	}
}

// look makes the checks that each server needs for itself.
func (s *server) look() {
	s.latency()
	s.clock()
	text, err := s.do("info", "everything").Text()
	if err != nil {
		s.mayNot("info", "INFO", err)
		return
	}
	s.info = parseInfo(text)
	s.version()
	s.memory()
	s.persistence()
	s.replication()
}

// parseInfo reads the answer of INFO.
func parseInfo(text string) map[string]string {
	info := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			info[name] = value
		}
	}
	return info
}

// config reads a setting. ok is false if the server does not give it.
func (s *server) config(name string) (value string, ok bool) {
	switch list, err := s.do("config", "get", name).Result(); list := list.(type) {
	case []any:
		if err == nil && len(list) == 2 {
			value, ok = list[1].(string)
		}
	case map[any]any:
		value, ok = list[name].(string)
	}
	return value, ok
}
