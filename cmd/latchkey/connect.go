package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/latchkey-go/latchkey/internal/reply"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson"
	"github.com/redis/go-redis/v9"
)

// urlVariable names Redis in the environment.
const urlVariable = "LATCHKEY_REDIS_URL"

const defaultURL = "redis://localhost:6379"

// quiet keeps go-redis from writing about connections beside our own messages.
type quiet struct{}

// Printf implements go-redis' logger.
func (quiet) Printf(context.Context, string, ...any) {}

func hushRedis() { redis.SetLogger(quiet{}) }

// address is the URL of Redis, also if it was given as host:port.
func (a *app) address() (text, from string) {
	text, from = a.url, "--redis"
	if text == "" {
		text, from = a.getenv(urlVariable), urlVariable
	}
	if text != "" && !strings.Contains(text, "://") {
		text = "redis://" + text
	}
	return cmp.Or(text, defaultURL), from
}

// place is the address without secrets, for messages.
func (a *app) place() string {
	text, _ := a.address()
	u, err := url.Parse(text)
	if err != nil {
		return "redis"
	}
	q := u.Query()
	for name := range q {
		if strings.Contains(name, "password") {
			q.Set(name, "xxxxx")
		}
	}
	u.RawQuery = q.Encode()
	return u.Redacted()
}

// open makes a client of the locks. It does not talk to Redis yet.
func (a *app) open(opts ...redisson.Option) (c *redisson.Client, done func(), err error) {
	rdb, err := a.dial()
	if err != nil {
		return nil, nil, err
	}
	if c, err = redisson.New(rdb, append([]redisson.Option{redisson.Timeout(a.timeout)}, opts...)...); err != nil {
		_ = rdb.Close()
		return nil, nil, usage("%w", err)
	}
	return c, func() { _ = errors.Join(c.Close(), rdb.Close()) }, nil
}

// dial makes a client of Redis.
func (a *app) dial() (redis.UniversalClient, error) {
	text, from := a.address()
	config, err := a.tls()
	if err != nil {
		return nil, err
	}
	u, _ := url.Parse(text)
	rdb, err := reply.Dialling{Timeout: a.timeout, Name: "latchkey", TLS: config, Credentials: a.credentials(u)}.Client(text)
	if err != nil {
		return nil, usage("%s: %w", from, err)
	}
	return rdb, nil
}

// unanswered adds to an error of Redis which server it was.
func (a *app) unanswered(err error) error {
	e := exitOf(err)
	if e.status != statusNoAnswer && !reply.Classify(err).NoCommand {
		return err
	}
	if e.status == statusNoAnswer {
		err = fmt.Errorf("no answer from %s: %w", a.place(), err)
	}
	if hint := a.hint(); hint != "" {
		err = fmt.Errorf("%w; %s", err, hint)
	}
	return &exit{e.status, e.event, err}
}

// reach asks whether Redis is there: one that is not costs its timeout once, and not for each question.
func (a *app) reach(ctx context.Context) error {
	rdb, err := a.dial()
	if err != nil {
		return err
	}
	defer rdb.Close()
	ctx, cancel := context.WithTimeout(ctx, a.timeout)
	defer cancel()
	if err = rdb.Ping(ctx).Err(); err != nil && !reply.Classify(err).NoRight {
		return a.unanswered(refusal(err))
	}
	return nil
}

// refusal marks an error about a plain Redis client's credentials: the locks' client does so by itself.
func refusal(err error) error {
	if reply.Classify(err).Refused {
		return fmt.Errorf("%w: %w", lock.ErrRefused, err)
	}
	return err
}
