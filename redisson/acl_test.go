package redisson_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson"
	"github.com/latchkey-go/latchkey/redisson/internal/transport"
	"github.com/redis/go-redis/v9"
)

// The lines of docs/security.md that make users: each suffices for its feature, and no word of it can be left out.

// aclLine is a line of the document: the words behind ACL SETUSER name.
type aclLine struct {
	user  string
	words []string
	more  bool // in addition to another line
}

func aclLines(t *testing.T) (lines []aclLine) {
	t.Helper()
	text, err := os.ReadFile("../docs/security.md")
	check(t, err)
	for line := range strings.Lines(string(text)) {
		rule, ok := strings.CutPrefix(line, "ACL SETUSER ")
		if !ok {
			continue
		}
		words := strings.Fields(rule)
		l := aclLine{user: words[0], words: words[1:], more: words[1] != "on"}
		if !l.more {
			l.words = l.words[2:] // on >secret
		}
		lines = append(lines, l)
	}
	return lines
}

// without returns the words but for one.
func (l aclLine) without(word string) []string {
	return slices.DeleteFunc(slices.Clone(l.words), func(w string) bool { return w == word })
}

// aclUse is the use of a feature by two clients of one user. It ends with the first error.
type aclUse struct {
	t     *testing.T
	ctx   context.Context
	stop  context.CancelFunc    // ends ctx
	admin *redis.Client         // nil in a cluster
	stock redis.UniversalClient // of a user who may do everything
	a, b  *redisson.Client
	pause time.Duration // how long somebody waits, and listens
	login func(*redis.Options)
	s     *redistest.Server
}

// denials are what the server has denied its users, but for CLIENT SETINFO, which go-redis sends without need, and for the reason why a lock was freed. Before Redis 7.0, the log
// has only the first word of a command.
func denials(t *testing.T, admin *redis.Client) (denied []string) {
	t.Helper()
	log, err := admin.ACLLog(t.Context(), 100).Result()
	check(t, err)
	for _, d := range log {
		if d.Object != "client" && !strings.HasPrefix(d.Object, "client|") && d.Object != "latchkey_frees" && d.Object != "xrevrange" {
			denied = append(denied, d.Reason+" "+d.Object)
		}
	}
	return denied
}

// tryACL uses a feature as a user with these words, and returns what went wrong: the error, or what was denied up to patience later,
// as a channel is given up some time after its last use.
func tryACL(t *testing.T, user string, words []string, pause, patience time.Duration) error {
	t.Helper()
	s := redistest.Start(t)
	u := &aclUse{t: t, admin: s.Client(t), pause: pause, s: s}
	u.stock = u.admin
	u.ctx, u.stop = context.WithCancel(t.Context())
	defer u.stop()
	setUser(t, func(args ...any) error { return u.admin.Do(t.Context(), args...).Err() }, strings.Join(words, " "))
	u.login = func(o *redis.Options) { o.Username, o.Password = "locker", "secret" }
	u.a, u.b = onClient(t, s.Client(t, u.login)), onClient(t, s.Client(t, u.login))
	err := aclUses[user](u)
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		if denied := denials(t, u.admin); len(denied) > 0 {
			return errors.Join(err, fmt.Errorf("denied: %v", denied))
		}
		if err != nil || !time.Now().Before(end) {
			return err
		}
	}
}

// setUser makes the user locker, who may do what the rules say.
func setUser(t *testing.T, do func(args ...any) error, rules string) {
	t.Helper()
	args := []any{"acl", "setuser", "locker", "reset", "resetchannels", "on", ">secret"} // channels are free to all before Redis 7.0
	for rule := range strings.FieldsSeq(rules) {
		args = append(args, rule)
	}
	if err := do(args...); err != nil {
		t.Fatal(err)
	}
}

// Each line of the document is enough for its feature, and without any of its words something is denied, or fails.
func TestACLLines(t *testing.T) {
	t.Parallel()
	uses := 0
	for _, l := range aclLines(t) {
		if l.more {
			continue
		}
		uses++
		t.Run(l.user, func(t *testing.T) {
			t.Parallel()
			err := tryACL(t, l.user, l.words, silently, 0)
			for try := 0; errors.Is(err, transport.ErrNoAnswer) && try < 5; try++ { // of a busy machine
				err = tryACL(t, l.user, l.words, silently, 0)
			}
			if err != nil {
				t.Fatalf("the line does not suffice: %v", err)
			}
			l.fences(t)
			for _, word := range l.words {
				t.Run(word, func(t *testing.T) {
					t.Parallel()
					pause := confirmSkip
					if word == "+ping" {
						pause = silently
					}
					if err := tryACL(t, l.user, l.without(word), pause, 10*time.Second); err == nil {
						t.Error("it can be left out")
					}
				})
			}
		})
	}
	if uses != len(aclUses) {
		t.Errorf("the document has lines for %d of %d features", uses, len(aclUses))
	}
}

// fences tries each name of each line, as it is for a lock of this user and of others.
func (l aclLine) fences(t *testing.T) {
	s := redistest.Start(t)
	admin := s.Client(t)
	setUser(t, func(args ...any) error { return admin.Do(t.Context(), args...).Err() }, strings.Join(l.words, " "))
	rdb := s.Client(t, func(o *redis.Options) { o.Username, o.Password = "locker", "secret" })
	denied := func(name string) bool {
		try := func(args ...any) bool {
			err := rdb.Do(t.Context(), args...).Err()
			return err != nil && regexp.MustCompile("NOPERM|can't access").MatchString(err.Error())
		}
		if channel, ok := strings.CutPrefix(name, "&"); ok {
			return try("publish", channel, "0")
		}
		inScript := slices.Contains(l.words, "+exists")
		return try("eval", "return 1", 1, name[1:]) && (!inScript || try("eval", "return redis.call('exists', ARGV[1])", 0, name[1:]))
	}
	for _, other := range aclLines(t) {
		for _, word := range other.words {
			if !strings.Contains("~&", word[:1]) {
				continue
			}
			own := strings.TrimSuffix(word, "*") + "7}:x"
			if may := slices.Contains(l.words, word); denied(own) == may {
				t.Errorf("%s: denied is %v", own, may)
			}
			if !strings.Contains(word, "order:") { // a client's own, whatever it locks
				continue
			}
			for _, theirs := range []string{"invoice:", "orders:"} {
				if name := strings.Replace(own, "order:", theirs, 1); !denied(name) {
					t.Errorf("%s may be touched", name)
				}
			}
		}
	}
}

// Between them, the lines name all commands of all scripts, and no others than the client's own.
func TestACLLinesNameAllCommands(t *testing.T) {
	named := map[string]bool{}
	for _, l := range aclLines(t) {
		for _, word := range l.words {
			if command, ok := strings.CutPrefix(word, "+"); ok {
				command, _, _ = strings.Cut(command, "|")
				named[command] = true
			}
		}
	}
	called := regexp.MustCompile(`redis\.p?call\('([a-z]+)'`)
	files, err := filepath.Glob("lua/*.lua")
	check(t, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		check(t, err)
		for _, command := range called.FindAllStringSubmatch(string(text), -1) {
			if !named[command[1]] {
				t.Errorf("%s calls %s, which no line of the document allows", file, command[1])
			}
		}
	}
	if len(files) == 0 {
		t.Error("no scripts")
	}
}

// aclAddition is the first line that adds a word to a user, and the words of both.
func aclAddition(t *testing.T, user, word string) (more aclLine, both []string) {
	t.Helper()
	for _, l := range aclLines(t) {
		if l.user == user && !l.more {
			both = slices.Clone(l.words)
		}
		if more.user == "" && l.more && l.user == user && slices.Contains(l.words, word) {
			more = l
		}
	}
	if more.user != user {
		t.Fatalf("no line adds %s to the user %s", word, user)
	}
	return more, append(both, more.words...)
}

// SyncReplicas needs one word more.
func TestACLLineOfSyncReplicas(t *testing.T) {
	t.Parallel()
	more, both := aclAddition(t, "lock", "+wait")
	for _, word := range append([]string{"nothing"}, more.words...) {
		s := redistest.Start(t)
		admin := s.Client(t)
		setUser(t, func(args ...any) error { return admin.Do(t.Context(), args...).Err() }, strings.Join(aclLine{words: both}.without(word), " "))
		c := onClient(t, s.Client(t, func(o *redis.Options) { o.Username, o.Password = "locker", "secret" }), redisson.SyncReplicas(1, time.Millisecond))
		_, err := c.Acquire(t.Context(), lock.Request{Key: aclName})
		if denied := denials(t, admin); !errors.Is(err, redisson.ErrNotReplicated) || (len(denied) > 0) != (word != "nothing") {
			t.Errorf("without %s: %v, denied %v", word, err, denied)
		}
	}
}

// A cluster needs some words more.
func TestACLLinesInACluster(t *testing.T) {
	t.Parallel()
	for user, use := range map[string]func(*aclUse) error{"lock": (*aclUse).lockInACluster, "inspect": (*aclUse).inspect, "force": (*aclUse).force} {
		t.Run(user, func(t *testing.T) {
			t.Parallel()
			c := redistest.StartCluster(t, 0)
			more, both := aclAddition(t, user, "+cluster|slots")
			if !c.Sharded { // before Redis 7.0, the words for sharded channels are unknown
				sharded := func(word string) bool {
					return regexp.MustCompile("spublish|ssubscribe|sunsubscribe|shardchannels|~latchkey_client").MatchString(word)
				}
				base := both[:len(both)-len(more.words)]
				more.words = slices.DeleteFunc(more.words, sharded)
				both = append(base, more.words...)
			}
			if err := tryACLInACluster(t, c, both, use); err != nil {
				t.Fatalf("the lines do not suffice: %v", err)
			}
			for _, word := range more.words {
				if err := tryACLInACluster(t, c, aclLine{words: both}.without(word), use); err == nil {
					t.Errorf("%s can be left out", word)
				}
			}
		})
	}
}

// tryACLInACluster is tryACL in a cluster.
func tryACLInACluster(t *testing.T, c *redistest.Cluster, words []string, use func(*aclUse) error) error {
	t.Helper()
	for _, n := range c.Masters {
		setUser(t, func(args ...any) error { return n.Admin.Do(t.Context(), args...).Err() }, strings.Join(words, " "))
		n.Do(t, "acl", "log", "reset")
		n.Do(t, "flushall")
	}
	login := func(o *redis.ClusterOptions) { o.Username, o.Password = "locker", "secret" }
	u := &aclUse{t: t, stock: c.Client(t), a: onClient(t, c.Client(t, login)), b: onClient(t, c.Client(t, login))}
	u.ctx, u.stop = context.WithTimeout(t.Context(), 5*time.Second)
	defer u.stop()
	err := use(u)
	time.Sleep(400 * time.Millisecond) // until nothing is subscribed any more
	for _, n := range c.Masters {
		if denied := denials(t, n.Admin); len(denied) > 0 {
			err = errors.Join(err, fmt.Errorf("denied: %v", denied))
		}
	}
	return err
}

// Who may not release a lock does not get it.
func TestNoRightToReleaseIsNoLock(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	admin := s.Client(t)
	for _, l := range aclLines(t) {
		kinds := map[string][]lock.Kind{"lock": {lock.Exclusive}, "spin": {lock.Spin}, "fenced": {lock.Fenced}, "fair": {lock.Fair}, "rw": {lock.Write, lock.Read}, "permit": {lock.Permit}}[l.user]
		if l.more {
			continue
		}
		for _, word := range l.words {
			if word[0] != '~' {
				continue
			}
			setUser(t, func(args ...any) error { return admin.Do(t.Context(), args...).Err() }, strings.Join(l.without(word), " "))
			c := onClient(t, s.Client(t, func(o *redis.Options) { o.Username, o.Password = "locker", "secret" }))
			for _, kind := range kinds {
				h, err := c.Acquire(t.Context(), lock.Request{Key: aclName, Kind: kind, Limit: 1})
				if err == nil {
					err = h.Release(t.Context())
				} else if !errors.Is(err, lock.ErrRefused) {
					t.Errorf("%s without %s, %v: %v", l.user, word, kind, err)
					continue
				}
				if n := admin.Exists(t.Context(), aclName).Val(); n > 0 || err != nil && h != nil {
					t.Errorf("%s without %s, %v: there is a lock; %v", l.user, word, kind, err)
				}
				admin.FlushDB(t.Context())
			}
		}
	}
}

// A shadow has a lock of its own.
func TestACLLineOfShadows(t *testing.T) {
	t.Parallel()
	more, both := aclAddition(t, "lock", "~latchkey-shadow:order:*")
	for _, word := range append([]string{"nothing"}, more.words...) {
		s := redistest.Start(t)
		admin := s.Client(t)
		setUser(t, func(args ...any) error { return admin.Do(t.Context(), args...).Err() }, strings.Join(aclLine{words: both}.without(word), " "))
		c := onClient(t, s.Client(t, func(o *redis.Options) { o.Username, o.Password = "locker", "secret" }))
		h, err := c.Acquire(t.Context(), lock.Request{Key: "latchkey-shadow:" + aclName})
		if err == nil {
			err = h.Release(t.Context())
		}
		if (err != nil) != strings.HasPrefix(word, "~latchkey-shadow") { // without a wake list, or a message, nobody is woken
			t.Errorf("without %s: %v", word, err)
		}
		if denied := denials(t, admin); (len(denied) > 0) != (word != "nothing") {
			t.Errorf("without %s: denied %v", word, denied)
		}
	}
}

// Name needs a key more.
func TestACLLineOfName(t *testing.T) {
	t.Parallel()
	more, both := aclAddition(t, "lock", "~latchkey_client:*")
	for _, word := range append([]string{"nothing"}, more.words...) {
		s := redistest.Start(t)
		admin := s.Client(t)
		setUser(t, func(args ...any) error { return admin.Do(t.Context(), args...).Err() }, strings.Join(aclLine{words: both}.without(word), " "))
		c := onClient(t, s.Client(t, func(o *redis.Options) { o.Username, o.Password = "locker", "secret" }), redisson.Name("n"))
		acquire(t.Context(), t, c, lock.Request{Key: aclName})
		eventually(t, "the name is shown or denied", func() bool {
			shown := admin.Exists(t.Context(), "latchkey_client:"+c.ID()).Val() == 1
			return shown != (len(denials(t, admin)) > 0) && shown == (word == "nothing")
		})
	}
}

// Users who may not touch a wake list take turns with those who may.
func TestNoRightToTheWakeList(t *testing.T) {
	t.Parallel()
	l := aclLines(t)[0]
	s := redistest.Start(t)
	admin := s.Client(t)
	setUser(t, func(args ...any) error { return admin.Do(t.Context(), args...).Err() }, strings.Join(l.without("~latchkey_wake:{order:*"), " "))
	clients := []*redisson.Client{newClient(t, s), newClient(t, s)}
	for range 2 {
		clients = append(clients, onClient(t, s.Client(t, func(o *redis.Options) { o.Username, o.Password = "locker", "secret" })))
	}
	for _, c := range clients { // after the first lock it knows
		check(t, acquire(t.Context(), t, c, lock.Request{Key: aclName}).Release(t.Context()))
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	var all sync.WaitGroup
	turns, longest := make([]int, len(clients)), make([]time.Duration, len(clients))
	for i, c := range clients {
		all.Go(func() {
			for ctx.Err() == nil {
				began := time.Now()
				h, err := c.Acquire(t.Context(), lock.Request{Key: aclName, Wait: waits / 2})
				if err != nil {
					t.Errorf("client %d: %v", i, err)
					return
				}
				turns[i]++
				longest[i] = max(longest[i], time.Since(began))
				time.Sleep(5 * time.Millisecond)
				if err := h.Release(t.Context()); err != nil {
					t.Errorf("client %d: %v", i, err)
				}
				time.Sleep(3 * time.Millisecond)
			}
		})
	}
	all.Wait()
	if slices.Min(turns) < 3 || slices.Max(longest) > time.Second {
		t.Errorf("turns %v, longest waits %v", turns, longest)
	}
}

// A health check is allowed to each user who may use locks, whatever keys those may have.
func TestPingNamesNoKey(t *testing.T) {
	s := redistest.Start(t)
	check(t, s.Client(t).Do(t.Context(), "ACL", "SETUSER", "shop", "on", ">secret", "~order:*", "&*", "+@all").Err())
	c := onClient(t, s.Client(t, func(o *redis.Options) { o.Username, o.Password = "shop", "secret" }))
	check(t, c.Ping(t.Context()))
}
