package play

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"
)

// Store is a number that can be read and written, but not added to: as a file is, or somebody else's API.
type Store interface {
	Read(ctx context.Context) (int64, error)
	Write(ctx context.Context, n int64) error
}

// Balance is the key of the number.
const Balance = "balance"

// ErrRefused says that the store did not take a holder for the present one.
var ErrRefused = errors.New("the store has seen a newer holder of the lock")

// openStore is a Store that believes everybody.
type openStore struct{ rdb *redis.Client }

func (s openStore) Read(ctx context.Context) (int64, error) {
	n, err := s.rdb.Get(ctx, Balance).Int64()
	if errors.Is(err, redis.Nil) {
		return 0, nil
	}
	return n, err
}

func (s openStore) Write(ctx context.Context, n int64) error {
	return s.rdb.Set(ctx, Balance, n, 0).Err()
}
