package transport

import (
	"slices"
	"testing"
	"time"
)

// A session is kept for a while, and for no longer than go-redis leaves its socket alone.
func TestOldSessionsGoBackToThePool(t *testing.T) {
	r := &Road{sweeper: time.AfterFunc(forever, func() {})}
	defer r.sweeper.Stop()
	l, now := &lane{made: 2}, time.Now()
	young, old := &session{since: now.Add(time.Second - sessionAge)}, &session{since: now.Add(-sessionAge)}
	r.arriveLocked(l, young, now, true)
	r.arriveLocked(l, old, now, true)
	if !slices.Equal(l.sessions, []*session{young}) || !slices.Equal(r.gone, []*session{old}) || l.made != 1 {
		t.Errorf("%d sessions are kept and %d given back, of %d", len(l.sessions), len(r.gone), l.made)
	}
}
