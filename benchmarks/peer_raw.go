package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"

	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
)

// compareAndDelete releases a lock of SET NX.
const compareAndDelete = `if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("del", KEYS[1]) else return 0 end`

// errBusy is what a peer that cannot wait returns for a lock that others hold, and errNotHeld for one that it has lost.
var (
	errBusy    = errors.New("held by others")
	errNotHeld = errors.New("not held any more")
)

// token is a random value as locks of SET NX have it.
func token() string {
	var b [16]byte
	rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// raw is a lock in two commands, by hand, on go-redis.
type raw struct {
	rdb    *redis.Client
	delete *redis.Script
}

type rawHeld struct {
	r          *raw
	key, token string
}

func openRaw(addr string) (peer, error) {
	return &raw{redis.NewClient(&redis.Options{Addr: addr}), redis.NewScript(compareAndDelete)}, nil
}

func (r *raw) Lock(ctx context.Context, key string) (held, error) {
	h := &rawHeld{r, key, token()}
	ok, err := r.rdb.SetNX(ctx, key, h.token, lease).Result()
	if err == nil && !ok {
		err = errBusy
	}
	return h, err
}

func (h *rawHeld) Release(ctx context.Context) error {
	n, err := h.r.delete.Run(ctx, h.r.rdb, []string{h.key}, h.token).Int()
	if err == nil && n != 1 {
		err = errNotHeld
	}
	return err
}

func (r *raw) Close() error { return r.rdb.Close() }

// rawRueidis is raw on rueidis.
type rawRueidis struct {
	c      rueidis.Client
	delete *rueidis.Lua
}

type rueidisHeld struct {
	r          *rawRueidis
	key, token string
}

func openRueidis(addr string) (peer, error) {
	c, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{addr}})
	if err != nil {
		return nil, err
	}
	return &rawRueidis{c, rueidis.NewLuaScript(compareAndDelete)}, nil
}

func (r *rawRueidis) Lock(ctx context.Context, key string) (held, error) {
	h := &rueidisHeld{r, key, token()}
	err := r.c.Do(ctx, r.c.B().Set().Key(key).Value(h.token).Nx().PxMilliseconds(lease.Milliseconds()).Build()).Error()
	if rueidis.IsRedisNil(err) {
		err = errBusy
	}
	return h, err
}

func (h *rueidisHeld) Release(ctx context.Context) error {
	n, err := h.r.delete.Exec(ctx, h.r.c, []string{h.key}, []string{h.token}).AsInt64()
	if err == nil && n != 1 {
		err = errNotHeld
	}
	return err
}

func (r *rawRueidis) Close() error {
	r.c.Close()
	return nil
}
