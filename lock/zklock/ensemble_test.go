package zklock_test

import (
	"errors"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/services"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/zklock"
)

// ensemble starts three servers, and returns the leader and the others.
func ensemble(t *testing.T, o services.Options) (leader *services.Server, followers []*services.Server) {
	t.Helper()
	all, err := services.ZooKeeperEnsemble(3, o)
	switch {
	case errors.Is(err, services.ErrMissing) && !services.Required("zookeeper"):
		t.Skipf("needs zookeeper: %v (or set LATCHKEY_REQUIRE=zookeeper to make this a failure)", err)
	case err != nil:
		t.Fatal(err)
	}
	for _, s := range all {
		t.Cleanup(s.Stop)
		switch mode, err := services.ZooKeeperMode(t.Context(), s.Addr); mode {
		case "leader":
			leader = s
		case "follower":
			followers = append(followers, s)
		default:
			t.Fatalf("%s is a %q, %v", s.Addr, mode, err)
		}
	}
	if leader == nil {
		t.Fatal("there is no leader")
	}
	return leader, followers
}

func connectAll(t *testing.T, timeout time.Duration, servers ...*services.Server) *zklock.Session {
	t.Helper()
	var addrs []string
	for _, s := range servers {
		addrs = append(addrs, s.Addr)
	}
	s, err := zklock.Connect(addrs, zklock.SessionTimeout(timeout))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestLockOutlivesItsLeader(t *testing.T) {
	t.Parallel()
	leader, followers := ensemble(t, services.Options{Args: []string{"maxSessionTimeout=20000"}})
	l := newLocker(t, connectAll(t, 20*time.Second, leader, followers[0], followers[1]), zklock.Timeout(19*time.Second))
	h := afterOutage(t, l, lock.Request{Key: "k", Kind: lock.Fenced})
	waiter := acquire(t, l, lock.Request{Key: "k", Kind: lock.Fenced, Wait: -1})
	if err := leader.Kill(); err != nil {
		t.Fatal(err)
	}
	other := newLocker(t, connectAll(t, 4*time.Second, followers...))
	soon(t, "the new leader says busy", func() bool {
		_, err := other.Acquire(t.Context(), lock.Request{Key: "k"})
		return errors.Is(err, lock.ErrBusy)
	})
	alive(t, h)
	release(t, h)
	next := waiter.held()
	if token(next) <= token(h) {
		t.Errorf("token %d of the new leader's time follows %d", token(next), token(h))
	}
	release(t, next)
}

// The work ends while the only server left, which serves nobody, could still come back.
func TestQuorumIsLost(t *testing.T) {
	t.Parallel()
	leader, followers := ensemble(t, services.Options{})
	l := newLocker(t, connectAll(t, 2*time.Second, followers[0]))
	h := afterOutage(t, l, lock.Request{Key: "k"})
	start := time.Now()
	for _, s := range []*services.Server{leader, followers[1]} {
		if err := s.Kill(); err != nil {
			t.Fatal(err)
		}
	}
	if d := ends(t, h).Sub(start); d > 2*time.Second {
		t.Errorf("the hold ends %v after the quorum, with a session of 2s", d)
	}
	if _, err := l.Acquire(t.Context(), lock.Request{Key: "k", Wait: time.Second}); err == nil || errors.Is(err, lock.ErrBusy) {
		t.Errorf("Acquire without a quorum = %v, want an outage", err)
	}
	for _, s := range []*services.Server{leader, followers[1]} {
		if err := s.Run(); err != nil {
			t.Fatal(err)
		}
	}
	release(t, afterOutage(t, l, lock.Request{Key: "k", Wait: 20 * time.Second}))
}

// A follower that is cut off answers reads for as long as it takes it to notice, here 20 s, and pings as well. That
// proves nothing: the others could have ended the session. Of the two that are stopped here, they could not, but the hold does not know.
func TestAnswersOfAServerThatIsCutOffProveNothing(t *testing.T) {
	t.Parallel()
	leader, followers := ensemble(t, services.Options{Args: []string{"syncLimit=100"}})
	s := connectAll(t, 2*time.Second, followers[0])
	l := newLocker(t, s)
	h := afterOutage(t, l, lock.Request{Key: "k"})
	start := time.Now()
	for _, s := range []*services.Server{leader, followers[1]} {
		if err := s.Pause(); err != nil {
			t.Fatal(err)
		}
	}
	ended := ends(t, h)
	if d := ended.Sub(start); d > 2*time.Second {
		t.Errorf("the hold ends %v after the last proof, with a session of 2s", d)
	}
	if mode, err := services.ZooKeeperMode(t.Context(), followers[0].Addr); mode != "follower" {
		t.Errorf("the server that is cut off is a %q, %v: it was to go on answering", mode, err)
	}
	for _, s := range []*services.Server{leader, followers[1]} {
		if err := s.Resume(); err != nil {
			t.Fatal(err)
		}
	}
}
