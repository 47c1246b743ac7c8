package play

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/internal/redistest"
)

func TestMain(m *testing.M) {
	ActIfActor(tested)
	os.Exit(m.Run())
}

// tested is the step that the processes of these tests have: a key in Redis, unless the name of the lease says otherwise.
var tested = Step{Name: "tested", New: func(s Setting) (Locker, error) {
	switch os.Getenv(faultVariable) {
	case "no lock":
		return nil, errors.New("no lock today")
	case "silent":
		return &silent{}, nil
	case "mutex":
		return &mutex{}, nil
	}
	return &key{s.Redis[0]}, nil
}}

// faultVariable says what is wrong with the processes.
const faultVariable = "EVOLUTION_TEST_FAULT"

type mutex struct{ mu sync.Mutex }

func (m *mutex) TryLock(context.Context) (bool, error) { return m.mu.TryLock(), nil }
func (m *mutex) Unlock(context.Context) error          { m.mu.Unlock(); return nil }

type silent struct{ mutex }

func (*silent) TryLock(context.Context) (bool, error) { select {} }

type key struct{ rdb *redis.Client }

func (k *key) TryLock(ctx context.Context) (bool, error) { return k.rdb.SetNX(ctx, Key, 1, 0).Result() }
func (k *key) Unlock(ctx context.Context) error          { return k.rdb.Del(ctx, Key).Err() }

func needRedis(t *testing.T) {
	t.Helper()
	redistest.Start(t) // skips or fails without one, as the environment says
}

// A program tells what happens, on servers of its own, and is content if that is what its step says.
func TestRunTellsAndChecks(t *testing.T) {
	needRedis(t)
	step := tested
	step.Closes, step.Holes = []Play{TwoMachines, ForgetfulServer}, []Play{KilledHolder}
	var out strings.Builder
	err := Run(t.Context(), &out, step)
	if err == nil || !strings.Contains(err.Error(), ForgetfulServer.Name+": this should have ended otherwise") {
		t.Errorf("a hole where none should be: %v", err)
	}
	for _, want := range []string{"tested\n\nclosed: two processes want one lock\n  ann gets", "  bob is refused\n", "  HOLE: ann and bob hold the lock at once\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("it printed\n%swithout %q", out.String(), want)
		}
	}
	step.Closes, step.Holes = nil, []Play{KilledHolder}
	if err := Run(t.Context(), &out, step); err != nil {
		t.Errorf("a hole where one should be: %v", err)
	}
	step.Holes = []Play{TwoMachines}
	if err := Run(t.Context(), &out, step); err == nil {
		t.Error("no hole where one should be, and no error")
	}
}

// A play that could not be played is void, and neither a hole nor none.
func TestAPlayThatFailsIsVoid(t *testing.T) {
	needRedis(t)
	for _, tt := range []struct{ fault, want string }{
		{"no lock", "no lock today"},
		{"mutex", "ann never came to the point where it has a key in Redis"},
	} {
		t.Setenv(faultVariable, tt.fault)
		err := Run(t.Context(), t.Output(), Step{Name: "tested", Holes: []Play{KilledBetween}})
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.fault, err, tt.want)
		}
	}
}

// An interrupt ends a play, also while it waits for a process that does not answer.
func TestAnInterruptEndsAPlay(t *testing.T) {
	needRedis(t)
	t.Setenv(faultVariable, "silent")
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	start := time.Now()
	err := Run(ctx, interruptAt{"bob has a clock", interrupt}, Step{Name: "tested", Holes: []Play{FastClock}})
	if took := time.Since(start); !errors.Is(err, context.Canceled) || took > answerTimeout/2 {
		t.Errorf("an interrupted play: %v after %v, want context.Canceled soon", err, took)
	}
}

// interruptAt is a writer that interrupts a moment after it is told a line.
type interruptAt struct {
	line      string
	interrupt func()
}

func (w interruptAt) Write(b []byte) (int, error) {
	if strings.Contains(string(b), w.line) {
		time.AfterFunc(100*time.Millisecond, w.interrupt)
	}
	return len(b), nil
}

func TestRunWithoutAServerSaysWhatToInstall(t *testing.T) {
	t.Setenv("LATCHKEY_REDIS_SERVER", "no-such-server")
	err := Run(t.Context(), t.Output(), Step{Name: "tested", Holes: []Play{TwoMachines}})
	if err == nil || !strings.Contains(err.Error(), "install redis-server") {
		t.Errorf("without a server: %v", err)
	}
}
