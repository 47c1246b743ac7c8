package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/latchkey-go/latchkey/faults/server"
	"github.com/redis/go-redis/v9"
)

// The kinds of fault of a server that keeps its data.
var serverKinds = []kind{
	{name: "server killed, data kept", strike: restarted(1500)},
	{name: "server stopped", strike: func(ctx context.Context, s *stage) error {
		return s.halt(ctx, []*server.Server{s.one()}, s.between(200, 3000))
	}},
	{name: "connections killed", strike: repeated(5, 20, 200, "client", "kill", "type", "normal", "skipme", "yes")},
	{name: "subscriptions killed", strike: repeated(8, 20, 200, "client", "kill", "type", "pubsub")},
	{name: "script cache flushed", strike: repeated(20, 5, 60, "script", "flush")},
	{name: "clients paused", strike: func(ctx context.Context, s *stage) error {
		d := s.between(300, 2500)
		err := admin(ctx, s.one(), "client", "pause", d.Milliseconds(), []string{"all", "write"}[s.rng.IntN(2)])
		sleep(ctx, d)
		return errors.Join(err, admin(ctx, s.one(), "client", "unpause"))
	}},
	{name: "out of memory", strike: func(ctx context.Context, s *stage) error {
		return s.configured(ctx, s.between(500, 2500), "maxmemory", "1", "0")
	}},
	{name: "snapshot fails (MISCONF)", strike: misconf},
	{name: "no permission (NOPERM)", strike: func(ctx context.Context, s *stage) error {
		v := s.one()
		for range 3 {
			if err := admin(ctx, v, "acl", "setuser", server.User, "-@scripting"); err != nil {
				return err
			}
			sleep(ctx, s.between(50, 900))
			if err := admin(ctx, v, "acl", "setuser", server.User, "+@all"); err != nil {
				return err
			}
			sleep(ctx, s.between(50, 200))
		}
		return nil
	}},
	{name: "idle connections closed", strike: func(ctx context.Context, s *stage) error {
		return s.configured(ctx, 3*time.Second, "timeout", "1", "0")
	}},
	{name: "waiters of before", mix: []string{"fair"}, strike: func(ctx context.Context, s *stage) error {
		return s.backInTime(ctx, "redisson_lock_[qt][ui]*")
	}},
	{name: "too many clients", strike: func(ctx context.Context, s *stage) error {
		v := s.one()
		err := errors.Join(admin(ctx, v, "config", "set", "maxclients", 8), admin(ctx, v, "client", "kill", "type", "normal", "skipme", "yes"))
		sleep(ctx, s.between(500, 2000))
		return errors.Join(err, admin(ctx, v, "config", "set", "maxclients", 10000))
	}},
}

// restarted kills a server, and starts it again after up to so many milliseconds.
func restarted(most int) func(context.Context, *stage) error {
	return func(ctx context.Context, s *stage) error {
		v := s.one()
		v.Kill()
		sleep(ctx, s.between(0, most))
		return v.Run(ctx)
	}
}

// times strikes so many times.
func times(n int, strike func(context.Context, *stage) error) func(context.Context, *stage) error {
	return func(ctx context.Context, s *stage) (err error) {
		for i := 0; i < n && err == nil; i++ {
			err = strike(ctx, s)
		}
		return err
	}
}

// repeated asks a server for something so many times, with pauses from a to b milliseconds.
func repeated(n, a, b int, args ...any) func(context.Context, *stage) error {
	return times(n, func(ctx context.Context, s *stage) error {
		err := admin(ctx, s.one(), args...)
		sleep(ctx, s.between(a, b))
		return err
	})
}

// configured sets an option of a server for a while.
func (s *stage) configured(ctx context.Context, d time.Duration, option, value, before string) error {
	v := s.one()
	if err := admin(ctx, v, "config", "set", option, value); err != nil {
		return err
	}
	sleep(ctx, d)
	return admin(ctx, v, "config", "set", option, before)
}

// misconf has a server refuse writes because it can't write its snapshot: a folder has its name.
func misconf(ctx context.Context, s *stage) error {
	v := s.one()
	folder := filepath.Join(v.Dir, "dump.rdb")
	if err := errors.Join(os.RemoveAll(folder), os.MkdirAll(filepath.Join(folder, "in the way"), 0o755)); err != nil {
		return err
	}
	if err := errors.Join(admin(ctx, v, "config", "set", "save", "3600 1"), admin(ctx, v, "bgsave")); err != nil {
		return err
	}
	sleep(ctx, s.between(500, 2500))
	if err := errors.Join(os.RemoveAll(folder), admin(ctx, v, "config", "set", "save", "")); err != nil {
		return err
	}
	if err := admin(ctx, v, "bgsave"); err != nil {
		return err
	}
	for ctx.Err() == nil {
		info, err := v.Admin.Info(ctx, "persistence").Result()
		if err != nil || strings.Contains(info, "rdb_last_bgsave_status:ok") {
			return err
		}
		sleep(ctx, 20*time.Millisecond)
	}
	return context.Cause(ctx)
}

// The kinds of fault by which a server loses data.
var lossKinds = []kind{
	{name: "server killed, data lost", lost: true, strike: restarted(800)},
	{name: "everything flushed", lost: true, strike: repeated(4, 20, 300, "flushall")},
	{name: "failover to a replica that is behind", lost: true, strike: func(ctx context.Context, s *stage) error {
		return s.backInTime(ctx, "*")
	}},
	{name: "keys deleted", lost: true, strike: func(ctx context.Context, s *stage) error {
		return s.keys(ctx, func(v *server.Server, key string) error { return admin(ctx, v, "del", key) })
	}},
	{name: "keys expired", lost: true, strike: func(ctx context.Context, s *stage) error {
		return s.keys(ctx, func(v *server.Server, key string) error { return admin(ctx, v, "pexpire", key, 1) })
	}},
	{name: "wrong type", lost: true, strike: func(ctx context.Context, s *stage) error {
		var forced []string
		v := s.one()
		err := s.keys(ctx, func(v *server.Server, key string) error {
			forced = append(forced, key)
			return admin(ctx, v, "set", key, "something else")
		})
		for _, key := range forced {
			err = errors.Join(err, admin(ctx, v, "del", key))
		}
		return err
	}},
}

// The effect of a failover to a replica that is behind: keys are again what they were, and all connections
// end.
const (
	rememberKeys = `local all = {}
for _, key in ipairs(redis.call('keys', ARGV[1])) do
  all[#all + 1], all[#all + 2], all[#all + 3] = key, redis.call('pttl', key), redis.call('dump', key)
end
return all`
	restoreKeys = `for _, key in ipairs(redis.call('keys', ARGV[1])) do
  redis.call('del', key)
end
for i = 3, #ARGV, 3 do
  local left = ARGV[i + 1] - ARGV[2]
  if ARGV[i + 1] == '-1' or left > 0 then
    redis.call('restore', ARGV[i], math.max(left, 0), ARGV[i + 2])
  end
end`
)

// backInTime has the keys of a pattern be again what they were before, a few times.
func (s *stage) backInTime(ctx context.Context, pattern string) error {
	v := s.one()
	for range 3 {
		all, err := v.Admin.Eval(ctx, rememberKeys, nil, pattern).Slice()
		if err != nil {
			return err
		}
		behind := s.between(20, 800)
		sleep(ctx, behind)
		err = v.Admin.Eval(ctx, restoreKeys, nil, append([]any{pattern, behind.Milliseconds()}, all...)...).Err()
		if err != nil && !errors.Is(err, redis.Nil) {
			return err
		}
		if err := admin(ctx, v, "client", "kill", "type", "normal", "skipme", "yes"); err != nil {
			return err
		}
		sleep(ctx, s.between(100, 400))
	}
	return nil
}

// keys does something to the keys of locks that are there, a few times.
func (s *stage) keys(ctx context.Context, do func(*server.Server, string) error) error {
	v, done := s.one(), 0
	for range 200 {
		keys, err := v.Admin.Keys(ctx, fmt.Sprintf("r%d:*", s.order.Round)).Result() // a queue without its deadlines would stay for ever
		if err != nil {
			return err
		}
		for _, key := range keys {
			if err := do(v, key); err != nil {
				return err
			}
			done++
		}
		if sleep(ctx, s.between(1, 60)); done > 20 {
			return nil
		}
	}
	return errNobody
}
