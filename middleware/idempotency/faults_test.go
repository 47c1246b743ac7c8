package idempotency_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/guard/guardtest"
	"github.com/latchkey-go/latchkey/middleware"
	"github.com/latchkey-go/latchkey/middleware/idempotency"
)

// endings are handlers that are cut short the first time, and what a repeat is then told. A handler that may be repeated is, where the
// outcome is unknown.
var endings = []struct {
	name  string
	first func(s *shop, w http.ResponseWriter, r *http.Request)
	// told is the status of the first answer; 0 is a connection that breaks off.
	told int
	// again is what a repeat gets: unknown, stored or fresh.
	again string
}{
	{"panic", func(*shop, http.ResponseWriter, *http.Request) { panic("at the disco") }, 0, "unknown"},
	{"panic after an answer", func(_ *shop, w http.ResponseWriter, r *http.Request) {
		paid(w, r)
		panic(http.ErrAbortHandler)
	}, 0, "unknown"},
	{"panic that is recovered inside", func(_ *shop, w http.ResponseWriter, _ *http.Request) {
		defer func() {
			_ = recover()
			w.WriteHeader(http.StatusInternalServerError)
		}()
		panic("at the disco")
	}, 500, "fresh"},
	{"lost lock", func(s *shop, w http.ResponseWriter, _ *http.Request) {
		s.locks.Lose(s.locks.Held()[0])
		_, _ = w.Write([]byte("paid"))
	}, 500, "unknown"},
	{"lost lock, in silence", func(s *shop, _ http.ResponseWriter, _ *http.Request) {
		s.locks.Lose(s.locks.Held()[0])
	}, 500, "unknown"},
	{"lost lock after the answer", func(s *shop, w http.ResponseWriter, r *http.Request) {
		paid(w, r)
		s.locks.Lose(s.locks.Held()[0])
	}, 500, "unknown"},
	{"lost lock and an error of the handler's own", func(s *shop, w http.ResponseWriter, _ *http.Request) {
		s.locks.Lose(s.locks.Held()[0])
		w.WriteHeader(http.StatusServiceUnavailable)
	}, 503, "unknown"},
	{"lost lock and an error that is answered further out", func(s *shop, w http.ResponseWriter, _ *http.Request) {
		s.locks.Lose(s.locks.Held()[0])
		middleware.Failed(w, errors.New("no stock"))
	}, 500, "unknown"},
	{"a shorter body than declared", func(_ *shop, w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "9")
		_, _ = w.Write([]byte("half"))
	}, 0, "unknown"},
	{"a loss that the release finds", func(s *shop, w http.ResponseWriter, r *http.Request) {
		s.locks.Set(guardtest.LostUnnoticed())
		paid(w, r)
	}, 500, "stored"}, // it was done under the lock, and its record was still its own
	{"an answer that can't be stored", func(s *shop, w http.ResponseWriter, r *http.Request) {
		s.store.failFinish.Store(true)
		paid(w, r)
	}, 201, "unknown"},
	{"an error that can't be stored", func(s *shop, w http.ResponseWriter, _ *http.Request) {
		s.store.failFinish.Store(true)
		w.WriteHeader(http.StatusInternalServerError)
	}, 500, "unknown"},
}

func TestEndings(t *testing.T) {
	hushLog(t)
	for _, tt := range endings {
		t.Run(tt.name, func(t *testing.T) {
			for _, repeatable := range []bool{false, true} {
				t.Run(fmt.Sprintf("repeatable %v", repeatable), func(t *testing.T) { ending(t, tt.first, tt.told, tt.again, repeatable) })
			}
		})
	}
}

func ending(t *testing.T, first func(*shop, http.ResponseWriter, *http.Request), told int, again string, repeatable bool) {
	var opts []idempotency.Option
	if repeatable {
		opts = append(opts, idempotency.Repeatable())
	}
	each(t, func(t *testing.T, store *spy) {
		var s *shop
		s = open(t, store, func(w http.ResponseWriter, r *http.Request) {
			if s.runs.Load() == 1 {
				first(s, w, r)
				return
			}
			paid(w, r)
		}, opts...)
		a, err := s.try(t, t.Context(), call{})
		if (err != nil) != (told == 0) || err == nil && a.status != told {
			t.Errorf("first answer = %d %s, %v, want %d", a.status, a.body, err, told)
		}
		s.locks.Set()
		store.failFinish.Store(false)
		b := s.send(t, call{})
		switch {
		case again == "stored":
			if b.status != 201 || !b.replayed() {
				t.Errorf("repeat = %d %s", b.status, b.body)
			}
			s.wantRuns(t, 1)
		case again == "unknown" && !repeatable:
			wantProblem(t, b, 409, "ErrUnknown")
			wantProblem(t, s.send(t, call{body: "other"}), 422, "ErrReused")
			s.wantRuns(t, 1)
		default:
			if b.status != 201 || b.replayed() {
				t.Errorf("repeat = %d %s, want a run", b.status, b.body)
			}
			if c := s.send(t, call{}); c.status != 201 || !c.replayed() {
				t.Errorf("repeat of that = %d %s, want its answer", c.status, c.body)
			}
			s.wantRuns(t, 2)
		}
	})
}

// hushLog keeps what is logged, and returns it.
func hushLog(t *testing.T) *strings.Builder {
	var text strings.Builder
	var mu sync.Mutex
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(locked{&mu, &text}, nil)))
	t.Cleanup(func() { slog.SetDefault(before) })
	return &text
}

type locked struct {
	mu *sync.Mutex
	w  io.Writer
}

func (l locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

// Whoever is on call hears of an answer that was not stored, without the key or the caller.
func TestAnswerThatWasNotStoredIsLogged(t *testing.T) {
	text := hushLog(t)
	store := &spy{Store: idempotency.NewMemory(0)}
	s := open(t, store, paid)
	store.failFinish.Store(true)
	s.send(t, call{})
	for _, want := range []string{"WARN", "was not stored", "order.pay", "connection refused"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the log says %q, without %s", text, want)
		}
	}
	for _, secret := range []string{"k-1", "ann"} {
		if strings.Contains(text.String(), secret) {
			t.Errorf("the log says %q", text)
		}
	}
}

// Where the locks are out of reach, nothing is begun, and the request may come again.
func TestOutageOfTheLocks(t *testing.T) {
	each(t, func(t *testing.T, store *spy) {
		s := open(t, store, paid)
		s.locks.Set(guardtest.Outage(errors.New("no route")))
		if a := s.send(t, call{}); a.status != 503 || !bytes.Contains(a.body, []byte("guard#ErrOutage")) || a.header.Get("Retry-After") == "" {
			t.Errorf("answer = %d %s", a.status, a.body)
		}
		s.wantRuns(t, 0)
		s.locks.Set()
		if a := s.send(t, call{}); a.status != 201 || a.replayed() {
			t.Errorf("answer = %d %s", a.status, a.body)
		}
		s.locks.Set(guardtest.Outage(errors.New("no route")))
		if a := s.send(t, call{}); a.status != 201 || !a.replayed() {
			t.Errorf("what is done needs no lock: %d %s", a.status, a.body)
		}
	})
}

// Where the store is out of reach, nothing runs, also if it has begun a record and the answer was lost.
func TestOutageOfTheStore(t *testing.T) {
	each(t, func(t *testing.T, store *spy) {
		s := open(t, store, paid)
		for _, deaf := range []bool{false, true} {
			store.deaf.Store(deaf)
			store.failLook.Store(true)
			wantProblem(t, s.send(t, call{}), 503, "ErrStore")
			store.failLook.Store(false)
			store.failBegin.Store(true)
			wantProblem(t, s.send(t, call{}), 503, "ErrStore")
			store.failBegin.Store(false)
		}
		s.wantRuns(t, 0)
		if a := s.send(t, call{}); a.status != 201 {
			t.Errorf("answer = %d %s, want a run: the client was told that nothing was done", a.status, a.body)
		}
		s.wantRuns(t, 1)
	})
}

// A process that died at work has left its record, and nobody holds the lock.
func TestCrash(t *testing.T) {
	each(t, func(t *testing.T, store *spy) {
		s := open(t, store, paid)
		s.crash(t)
		for range 2 {
			wantProblem(t, s.send(t, call{}), 409, "ErrUnknown")
		}
		s.wantRuns(t, 0)
	})
}

func TestCrashOfWhatIsRepeatable(t *testing.T) {
	each(t, func(t *testing.T, store *spy) {
		s := open(t, store, paid, idempotency.Repeatable())
		s.crash(t)
		wantProblem(t, s.send(t, call{body: "other"}), 422, "ErrReused")
		for i, replayed := range []bool{false, true} {
			if a := s.send(t, call{}); a.status != 201 || a.replayed() != replayed {
				t.Errorf("answer %d = %d %s", i+1, a.status, a.body)
			}
		}
		s.wantRuns(t, 1)
	})
}

// What others have begun or done between the look and the lock is found under the lock.
func TestWhatIsFoundUnderTheLock(t *testing.T) {
	each(t, func(t *testing.T, store *spy) {
		s := open(t, store, paid, idempotency.Repeatable())
		s.crash(t)
		store.blind.Store(true)
		wantProblem(t, s.send(t, call{body: "other"}), 422, "ErrReused")
		for i, replayed := range []bool{false, true} {
			if a := s.send(t, call{}); a.status != 201 || a.replayed() != replayed {
				t.Errorf("answer %d = %d %s", i+1, a.status, a.body)
			}
		}
		wantProblem(t, s.send(t, call{body: "other"}), 422, "ErrReused")
		s.wantRuns(t, 1)
	})
}

// A guard that has not taken its lock does not know whether who began is still at work, so that nothing is repeated.
func TestWithoutALockNothingIsRepeated(t *testing.T) {
	each(t, func(t *testing.T, store *spy) {
		s := openWith(t, store, paid, []guard.Option{guard.Outage(guard.RunUnlocked)}, idempotency.Repeatable())
		s.crash(t)
		s.locks.Set(guardtest.Outage(errors.New("no route")))
		wantProblem(t, s.send(t, call{}), 409, "ErrUnknown")
		if a := s.send(t, call{keys: []string{"k-2"}}); a.status != 201 {
			t.Errorf("a new request runs as the policy says: %d %s", a.status, a.body)
		}
		s.locks.Set()
		if a := s.send(t, call{}); a.status != 201 {
			t.Errorf("with the lock, it runs: %d %s", a.status, a.body)
		}
	})
}

// When its time is over, a key is free for another request.
func TestTimeToLive(t *testing.T) {
	each(t, func(t *testing.T, store *spy) {
		s := open(t, store, paid, idempotency.KeepFor(time.Second))
		if s.send(t, call{}); !s.send(t, call{}).replayed() {
			t.Error("forgotten at once")
		}
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
			if a := s.send(t, call{body: "other"}); a.status == 201 {
				break
			} else if a.status != 422 || time.Now().After(deadline) {
				t.Fatalf("answer = %d %s", a.status, a.body)
			}
		}
		s.wantRuns(t, 2)
	})
}
