package locktest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime/pprof"
	"strings"
	"time"

	"github.com/latchkey-go/latchkey/lock"
)

// keys are what keeps apart the locks of different names.
var keys = []promise{
	// All keys are held at the same time, each only once.
	{"keys are independent, whatever is in them", func(s *scene) {
		var holds []lock.Hold
		for _, part := range hostile {
			for _, key := range []string{part + s.key, s.key + part} {
				holds = append(holds, s.acquire(s.Context(), s.own(lock.Request{Key: key})))
			}
		}
		for _, part := range hostile {
			s.start(s.Context(), s.rival(lock.Request{Key: s.key + part})).fails(lock.ErrBusy)
		}
		s.release(holds...)
	}},

	{"keys wake their own waiters, whatever is in them", func(s *scene) {
		for _, part := range hostile {
			key := part + s.key + part
			h := s.acquire(s.Context(), s.own(lock.Request{Key: key}))
			next := s.start(s.Context(), s.rival(lock.Request{Key: key, Wait: -1}))
			<-time.After(5 * time.Millisecond)
			s.release(h)
			s.release(next.held())
		}
	}},
}

// hostile are key parts that break what is built from strings: patterns, hash tags, separators, text protocols, limits.
var hostile = []string{
	" ", "  ", "\t", "\n", "\r\n", "\x00", "\xff\xfe", "é", "e\u0301", "鍵", "🔑", "A", "a", "%", "%s", "%25", "\\", `"`, "'",
	"{", "}", "{}", "{a}", "{{a}}", "*", "?", "[a]", ":", "::", "/", "../", ",", ";", "$", "0", "00", "-1", "nil", "write",
	strings.Repeat("k", 10_000), strings.Repeat("k", 10_001),
}

// requests are the answers to what a Locker can't do.
var requests = []promise{
	{"invalid requests are refused", func(s *scene) {
		valid := s.own(lock.Request{})
		for _, tt := range []struct {
			name  string
			spoil func(*lock.Request)
		}{
			{"empty key", func(r *lock.Request) { r.Key = "" }},
			{"negative lease", func(r *lock.Request) { r.Lease = -time.Second }},
			{"lease under a millisecond", func(r *lock.Request) { r.Lease = time.Microsecond }},
			{"negative max hold", func(r *lock.Request) { r.MaxHold = -time.Second }},
			{"kind of nothing", func(r *lock.Request) { r.Kind = 255 }},
			{"unknown kind", func(r *lock.Request) { r.Kind = lock.Permit + 1 }},
			{"permit without a limit", func(r *lock.Request) { r.Kind, r.Limit = lock.Permit, 0 }},
		} {
			r := valid
			tt.spoil(&r)
			_, err := s.start(s.Context(), r).result()
			if err == nil || errors.Is(err, lock.ErrBusy) || errors.Is(err, lock.ErrLost) {
				s.Errorf("%s: Acquire() = %v, want another error", tt.name, err)
			}
		}
		s.free()
	}},

	{"other kinds are not supported", func(s *scene) {
		served, tells := s.locker.(interface{ Serves(lock.Kind) error })
		for k := lock.Exclusive; k <= lock.Permit; k++ {
			if tells && errors.Is(served.Serves(k), lock.ErrUnsupported) == s.suite.has(k) {
				s.Errorf("Serves(%v) = %v", k, served.Serves(k))
			}
			if !s.suite.has(k) {
				s.start(s.Context(), lock.Request{Key: s.key, Kind: k, Limit: 1}).fails(lock.ErrUnsupported)
			}
		}
		s.free()
	}},

	// The others refuse them at once.
	{"levels and rates are served by those who say so", func(s *scene) {
		for _, r := range []lock.Request{permit(-1, s.level("", 1), s.level("a", 1)), s.rated(1, 2, time.Minute), s.rated(0, 2, time.Minute)} {
			if l, ok := s.locker.(leveler); !s.suite.has(lock.Permit) || !ok || l.ServesLevels(r.Key, r.Key+"a") != nil {
				s.start(s.Context(), r).fails(lock.ErrUnsupported)
				continue
			}
			s.release(s.acquire(s.Context(), r))
		}
	}},
}

// leaks are what must not be left behind.
var leaks = []promise{
	// Connections and their goroutines may come with the first use, so the count starts after it.
	{"no goroutine stays", func(s *scene) {
		const rounds = 20
		s.traffic()
		before := s.goroutines()
		for range rounds {
			s.traffic()
		}
		end := time.Now().Add(s.suite.patience)
		for s.goroutines() >= before+rounds/2 {
			if time.Now().After(end) {
				s.Errorf("%d goroutines after %d rounds, %d before", s.goroutines(), rounds, before)
				return
			}
			s.pause()
		}
	}},
}

// label marks this goroutine and those that it starts from now on, so that they can be counted beside other tests.
func label(key string) {
	pprof.SetGoroutineLabels(pprof.WithLabels(context.Background(), pprof.Labels("locktest", key)))
}

// goroutines counts those that have the label of the scene.
func (s *scene) goroutines() (n int) {
	var profile bytes.Buffer
	_ = pprof.Lookup("goroutine").WriteTo(&profile, 1)  // the buffer does not fail
	_, groups, _ := strings.Cut(profile.String(), "\n") // behind the total
	for group := range strings.SplitSeq(groups, "\n\n") {
		if strings.Contains(group, s.key) {
			var of int
			_, _ = fmt.Sscanf(group, "%d @", &of)
			n += of
		}
	}
	return n
}

// traffic ends one Acquire in each of the ways that it can end.
func (s *scene) traffic() {
	h := s.acquire(s.Context(), s.own(lock.Request{Wait: -1, Lease: time.Minute}))
	ctx, cancel := context.WithTimeout(s.Context(), 5*time.Millisecond)
	defer cancel()
	s.start(ctx, s.rival(lock.Request{Wait: -1})).fails(context.DeadlineExceeded)
	s.start(s.Context(), s.rival(lock.Request{Wait: 5 * time.Millisecond})).fails(lock.ErrBusy)
	next := s.start(s.Context(), s.rival(lock.Request{Wait: -1}))
	s.release(h)
	s.release(next.held())
}
