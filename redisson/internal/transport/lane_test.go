package transport

import (
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// A session is kept for a while, and for no longer than go-redis leaves its socket alone.
func TestOldSessionsGoBackToThePool(t *testing.T) {
	r := &Road{sweeper: time.AfterFunc(forever, func() {})}
	defer r.sweeper.Stop()
	l, now := &lane{made: 2}, time.Now()
	rdb := redis.NewClient(&redis.Options{})
	defer rdb.Close()
	young, old := &session{Conn: rdb.Conn(), since: now.Add(time.Second - sessionAge)}, &session{Conn: rdb.Conn(), since: now.Add(-sessionAge)}
	r.arriveLocked(l, young, now, true)
	r.arriveLocked(l, old, now, true)
	if !slices.Equal(l.sessions, []*session{young}) || l.made != 1 {
		t.Errorf("%d sessions are kept, of %d", len(l.sessions), l.made)
	}
}
