package redisson_test

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// inBubble runs a test in virtual time, with a client of a Redis that has the same clock.
func inBubble(t *testing.T, test func(t *testing.T, c *redisson.Client), opts ...redisson.Option) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		m := miniredis.NewMiniRedis()
		m.ClockTTL(true)
		defer m.Close()
		rdb := redis.NewClient(&redis.Options{
			Addr: "127.0.0.1:6379", Dialer: func(context.Context, string, string) (net.Conn, error) { return m.Dial() },
			MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
		})
		defer rdb.Close()
		c, err := redisson.New(rdb, opts...)
		check(t, err)
		defer c.Close()
		test(t, c)
	})
}

// The clocks of two machines may differ by 500 parts in a million. Of a long lease that is more than a second.
func TestLongLeaseEndsBeforeRedisDoes(t *testing.T) {
	const lease, drift = 4 * time.Hour, 4 * time.Hour / 2000
	for _, kind := range []lock.Kind{lock.Exclusive, lock.Fair, lock.Read, lock.Write, lock.Permit} {
		t.Run(kind.String(), func(t *testing.T) {
			inBubble(t, func(t *testing.T, c *redisson.Client) {
				start := time.Now()
				h := acquire(t.Context(), t, c, lock.Request{Key: "k", Kind: kind, Limit: 1, Lease: lease})
				<-h.Context().Done()
				if d := time.Since(start); d > lease-drift || d < lease*9/10 {
					t.Errorf("the hold ended %v before its lease of %v, want %v before it at least", lease-d, lease, drift)
				}
			})
		})
	}
}
