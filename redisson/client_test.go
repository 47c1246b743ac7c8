package redisson_test

import (
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/locktest"
	"github.com/latchkey-go/latchkey/redisson"
)

func newClient(tb testing.TB, s *redistest.Server, opts ...redisson.Option) *redisson.Client {
	tb.Helper()
	c, err := redisson.New(s.Client(tb), opts...)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = c.Close() })
	return c
}

func TestConformance(t *testing.T) {
	locktest.Run(t, func(t *testing.T) lock.Locker {
		return newClient(t, redistest.Any(t), redisson.WatchdogTimeout(time.Second))
	}, locktest.Kinds(lock.Exclusive))
}
