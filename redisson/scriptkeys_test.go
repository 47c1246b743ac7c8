package redisson_test

import (
	"bufio"
	"context"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/redis/go-redis/v9"
)

// Servers that want to know all keys of a script, such as Dragonfly, can serve those features whose scripts name them. docs/faq.md lists the
// others.
func TestScriptsNameTheirKeys(t *testing.T) {
	t.Parallel()
	for user, use := range aclUses {
		t.Run(user, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t)
			ran := monitor(t, s)
			u := &aclUse{t: t, admin: s.Client(t), pause: confirmSkip, s: s, login: func(*redis.Options) {}}
			u.stock, u.a, u.b = u.admin, newClient(t, s), newClient(t, s)
			u.ctx, u.stop = context.WithCancel(t.Context())
			defer u.stop()
			check(t, use(u))
			unnamed := slices.DeleteFunc(ran(), func(key string) bool { // ForceUnlock's
				return user != "force" && strings.Contains(key, " latchkey_receipt:")
			})
			if others := slices.Contains([]string{"rw", "inspect", "force"}, user); others != (len(unnamed) > 0) {
				t.Errorf("not named: %q", unnamed)
			}
		})
	}
}

// monitor returns what returns the keys that scripts have used and not named, each with its command.
func monitor(t *testing.T, s *redistest.Server) (unnamed func() []string) {
	conn, err := net.Dial("tcp", s.Addr)
	check(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	_, err = conn.Write([]byte("MONITOR\r\n"))
	check(t, err)
	in := bufio.NewScanner(conn)
	in.Buffer(nil, 16<<20)
	if !in.Scan() {
		t.Fatal(in.Err())
	}
	return func() (keys []string) {
		check(t, s.Client(t).Echo(t.Context(), "the end").Err())
		var named []string
		for in.Scan() {
			_, rest, _ := strings.Cut(in.Text(), "[0 ")
			from, rest, _ := strings.Cut(rest, "] ")
			var words []string
			for _, word := range strings.SplitAfter(rest, `" `) {
				text, err := strconv.Unquote(strings.TrimSpace(word))
				if err != nil {
					text = word
				}
				words = append(words, text)
			}
			command := strings.ToLower(words[0])
			switch {
			case command == "echo":
				slices.Sort(keys)
				return slices.Compact(keys)
			case from != "lua" && strings.HasPrefix(command, "eval"):
				n, err := strconv.Atoi(words[2])
				check(t, err)
				named = words[3 : 3+n]
			case from != "lua" || slices.Contains([]string{"time", "publish", "scan", "dbsize", "pubsub"}, command):
			case !slices.Contains(named, words[1]):
				keys = append(keys, command+" "+words[1])
			}
		}
		t.Fatal(in.Err())
		return nil
	}
}
