package pubsub

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
)

// assigned returns a registry with one subscription that is assigned to addr.
func assigned(t *testing.T, name, addr string) (*registry, *channel, *assignment) {
	t.Helper()
	r := newRegistry()
	ch := r.subscribe(name, nil, nil)
	if names, _ := r.due(); !slices.Equal(names, []string{name}) {
		t.Fatalf("due = %q", names)
	}
	created := r.assign([]place{{channel: name, addr: addr}})
	if len(created) != 1 {
		t.Fatalf("%d new assignments, want one", len(created))
	}
	return r, ch, created[0]
}

// expectPending compares what is to be sent.
func expectPending(t *testing.T, r *registry, a *assignment, subscribe, unsubscribe []string) {
	t.Helper()
	if s, u := r.pending(a); !slices.Equal(s, subscribe) || !slices.Equal(u, unsubscribe) {
		t.Errorf("pending = %q, %q, want %q, %q", s, u, subscribe, unsubscribe)
	}
}

func (r *registry) answer(a *assignment, kind, name string) (moved bool) {
	return r.confirm(a, &redis.Subscription{Kind: kind, Channel: name})
}

// A channel that was unsubscribed, and then wanted for so short that nothing was sent, is kept until the answer to its
// cancellation: that would else be taken for one of a later subscription.
func TestForgetAfterTheLastAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, ch, a := assigned(t, "k", "addr")
		expectPending(t, r, a, []string{"k"}, nil)
		r.answer(a, "ssubscribe", "k")
		r.unsubscribe(ch, nil, nil)
		time.Sleep(Linger)
		r.expire()
		expectPending(t, r, a, nil, []string{"k"})
		r.unsubscribe(r.subscribe("k", nil, nil), nil, nil)
		time.Sleep(Linger)
		r.expire()
		expectPending(t, r, a, nil, nil)
		if r.channels["k"] != ch {
			t.Fatal("the channel was forgotten before the answer")
		}
		r.answer(a, "sunsubscribe", "k")
		if len(r.channels) != 0 || len(a.channels) != 0 {
			t.Error("the channel was not forgotten after the answer")
		}
	})
}

// Only a sharded channel that is subscribed can move.
func TestMoved(t *testing.T) {
	for _, tt := range []struct {
		name, addr, kind string
		sent, want       bool
	}{
		{"sharded", "addr", "sunsubscribe", true, true},
		{"sharded, not yet subscribed", "addr", "sunsubscribe", false, false},
		{"classic", "", "unsubscribe", true, false},
	} {
		r, _, a := assigned(t, "k", tt.addr)
		if tt.sent {
			r.pending(a)
		}
		if got := r.answer(a, tt.kind, "k"); got != tt.want {
			t.Errorf("%s: moved = %v, want %v", tt.name, got, tt.want)
		}
		if r.answer(a, tt.kind, "other") {
			t.Errorf("%s: a channel that nobody knows has moved", tt.name)
		}
	}
}

// Answers of a connection that a channel has left are not for its next one.
func TestAnswerOfAnotherConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, ch, old := assigned(t, "k", "old")
		r.pending(old)
		r.release(old, []string{"k", "unknown"}, time.Second)
		if names, next := r.due(); len(names) != 0 || time.Until(next) != time.Second {
			t.Errorf("due = %q, then in %v, want nothing before a second", names, time.Until(next))
		}
		time.Sleep(time.Second)
		a := r.assign([]place{{channel: "k", addr: "new"}})[0]
		r.pending(a)
		r.answer(old, "ssubscribe", "k")
		if _, live := r.changed(ch); live {
			t.Error("live by the old connection's answer")
		}
		r.answer(a, "ssubscribe", "k")
		if _, live := r.changed(ch); !live {
			t.Error("not live after the answer")
		}
	})
}

// A channel that nobody wants any more when its place is found is not assigned.
func TestAssignToNobody(t *testing.T) {
	r := newRegistry()
	r.unsubscribe(r.subscribe("k", nil, nil), nil, nil)
	if created := r.assign([]place{{channel: "k"}}); len(created) != 0 || len(r.channels) != 0 {
		t.Errorf("%d assignments, %d channels", len(created), len(r.channels))
	}
}
