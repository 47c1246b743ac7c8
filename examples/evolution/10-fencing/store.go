package main

import (
	"context"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/examples/evolution/play"
)

// FencedStore is a number that knows the highest token it has seen, and refuses everybody with a lower one. It needs nothing
// else of the lock, and keeps the token beside the number, so that both change together.
type FencedStore struct {
	rdb   *redis.Client
	token func() int64
}

// stale is how the refusal of the script begins.
const stale = "STALE"

// The script asks for a token, and changes the number if a new one comes with it. The token counts from the first read on:
// otherwise an earlier holder could still write between the read of a later one and its write.
var fenced = redis.NewScript(`
	local seen = tonumber(redis.call('get', KEYS[2]) or '0')
	if tonumber(ARGV[1]) < seen then return redis.error_reply('` + stale + ` token, ' .. seen .. ' was seen') end
	redis.call('set', KEYS[2], ARGV[1])
	if ARGV[2] then redis.call('set', KEYS[1], ARGV[2]) end
	return tonumber(redis.call('get', KEYS[1]) or '0')`)

// Read returns the number, or play.ErrRefused if a later holder was here.
func (s *FencedStore) Read(ctx context.Context) (int64, error) { return s.run(ctx, s.token()) }

// Write changes the number, or returns play.ErrRefused if a later holder was here.
func (s *FencedStore) Write(ctx context.Context, n int64) error {
	_, err := s.run(ctx, s.token(), n)
	return err
}

func (s *FencedStore) run(ctx context.Context, args ...any) (int64, error) {
	n, err := fenced.Run(ctx, s.rdb, []string{play.Balance, play.Balance + ":token"}, args...).Int64()
	if err != nil && strings.HasPrefix(err.Error(), stale) {
		err = play.ErrRefused
	}
	return n, err
}
