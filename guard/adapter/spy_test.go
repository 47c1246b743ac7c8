package adapter_test

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/memlock"
)

// Order is the request of these tests.
type Order struct {
	ID    string
	Items []string
}

// marked is a request whose fields are the key.
type marked struct {
	Region string `guard:"key"`
	Note   string
	ID     int `json:"id" guard:"key"`
}

// spy is a memlock that keeps a log, and refuses where it is told to.
type spy struct {
	*memlock.Locker
	refuse map[string]error // by key

	mu       sync.Mutex
	log      []string
	requests []lock.Request // without their Holder, which is the guard of each
}

func newSpy() *spy { return &spy{Locker: memlock.New()} }

func (s *spy) Acquire(ctx context.Context, r lock.Request) (lock.Hold, error) {
	asked := r
	asked.Holder = ""
	s.note("acquire "+r.Key, asked)
	if err := s.refuse[r.Key]; err != nil {
		return nil, err
	}
	hold, err := s.Locker.Acquire(ctx, r)
	if err != nil {
		return nil, err
	}
	return &spyHold{hold, s, r.Key}, nil
}

func (s *spy) note(what string, asked ...lock.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log, s.requests = append(s.log, what), append(s.requests, asked...)
}

// check fails t if the log is not want.
func (s *spy) check(t *testing.T, want ...string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Equal(s.log, want) {
		t.Errorf("locker saw %q, want %q", s.log, want)
	}
}

type spyHold struct {
	lock.Hold
	spy *spy
	key string
}

func (h *spyHold) Release(ctx context.Context) error {
	h.spy.note("release " + h.key)
	return h.Hold.Release(ctx)
}

// infos are the guards of a registry, by name.
func infos(reg *guard.Registry) map[string]guard.Info {
	all := make(map[string]guard.Info)
	for info := range reg.All() {
		all[info.Spec.Name] = info
	}
	return all
}

// events is what an observer saw.
type events struct{ all []guard.Event }

func (e *events) add(_ context.Context, event guard.Event) { e.all = append(e.all, event) }
