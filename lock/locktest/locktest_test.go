package locktest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/memlock"
)

// brokenEnv is set in the processes that TestBroken starts, to the index of a broken Locker.
const brokenEnv = "LOCKTEST_BROKEN"

// A suite that lets everybody pass is worth nothing. Each broken Locker is run in a process of its own, where the check that
// is there to notice must fail.
func TestBroken(t *testing.T) {
	if i, err := strconv.Atoi(os.Getenv(brokenEnv)); err == nil {
		Run(t, func(*testing.T) lock.Locker { return broken[i].locker() }, broken[i].kinds(), impatient())
		return
	}
	for i, tt := range broken {
		t.Run(tt.name+"/"+tt.promise, func(t *testing.T) {
			t.Parallel()
			test := "TestBroken/" + group(tt.promise, tt.kind) + "/" + strings.ReplaceAll(tt.promise, " ", "_")
			var out string
			for range 3 { // what happens too late to be noticed, on a slow machine, is not late each time
				if out = runBroken(t, i, test); strings.Contains(out, "--- FAIL: "+test+" ") {
					break
				}
			}
			if !strings.Contains(out, "--- FAIL: "+test+" ") {
				t.Errorf("not noticed:\n%s", out)
			}
			if strings.Contains(out, "panic:") || strings.Contains(out, "DATA RACE") {
				t.Errorf("noticed by accident:\n%s", out)
			}
		})
	}
}

// runBroken runs one test with the i-th broken Locker and returns what it prints.
func runBroken(t *testing.T, i int, test string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.v", "-test.timeout=1m",
		"-test.run=^"+strings.ReplaceAll(test, "/", "$/^")+"$")
	cmd.Env = append(os.Environ(), brokenEnv+"="+strconv.Itoa(i))
	out, err := cmd.CombinedOutput()
	if _, failed := errors.AsType[*exec.ExitError](err); err != nil && !failed {
		t.Fatal(err)
	}
	return string(out)
}

// Each promise is one that some Locker breaks.
func TestEveryPromiseCanFail(t *testing.T) {
	noticed := make(map[string]bool)
	for _, tt := range broken {
		noticed[group(tt.promise, tt.kind)+tt.promise] = true
	}
	for kind := lock.Exclusive; kind <= lock.Permit; kind++ {
		for _, p := range special[kind] {
			if !noticed[kind.String()+p.name] {
				t.Errorf("no Locker breaks %q of %v", p.name, kind)
			}
		}
	}
	for _, p := range general {
		if !noticed[lock.Exclusive.String()+p.name] {
			t.Errorf("no Locker breaks %q", p.name)
		}
	}
	for _, p := range requests {
		if !noticed["requests"+p.name] {
			t.Errorf("no Locker breaks %q", p.name)
		}
	}
}

// group is the subtest that the promise is in.
func group(promise string, kind lock.Kind) string {
	for _, p := range requests {
		if p.name == promise {
			return "requests"
		}
	}
	return kind.String()
}

// kinds are those that b claims to have: all, unless it is about the others.
func (b brokenLocker) kinds() Option {
	if b.promise == requests[1].name {
		return Kinds(b.kind)
	}
	return Kinds(all...)
}

func impatient() Option {
	return optionFunc(func(s *suite) { s.patience = 500 * time.Millisecond })
}

// A Locker that has only some of the kinds passes if it says so.
func TestKindsSelect(t *testing.T) {
	Run(t, func(*testing.T) lock.Locker {
		l := memlock.New()
		return lockerFunc(func(ctx context.Context, r lock.Request) (lock.Hold, error) {
			if r.Kind > lock.Exclusive && r.Kind <= lock.Permit {
				return nil, fmt.Errorf("%w: %v", lock.ErrUnsupported, r.Kind)
			}
			return l.Acquire(ctx, r)
		})
	})
}
