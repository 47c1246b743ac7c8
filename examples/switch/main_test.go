package main

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/latchkey-go/latchkey/internal/services"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/etcdlock/etcdtest"
)

// The processes that the program starts are this test binary again.
func TestMain(m *testing.M) {
	etcdtest.Main()
	if len(os.Args) > 1 && os.Args[1] == "-locker" {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// required are the words of LATCHKEY_REQUIRE for the lockers that need a program.
var required = map[string]string{
	"redis": "redis", "setnx": "redis", "zookeeper": "zookeeper", "postgres": "postgres", "mysql": "mariadb", "mongo": "mongodb",
}

func TestTwoProcessesShareEachLocker(t *testing.T) {
	for _, svc := range all {
		t.Run(svc.name, func(t *testing.T) {
			args := []string{"-locker", svc.name, "-sales", "12"}
			if !svc.embedded {
				args = append(args, "-start")
			}
			var out strings.Builder
			err := run(t.Context(), args, &out)
			if need := required[svc.name]; errors.Is(err, services.ErrMissing) && !services.Required(need) {
				t.Skipf("needs %s: %v", need, err)
			}
			if err != nil {
				t.Fatal(err)
			}
			want := svc.name + ": 2 process(es) sold 24 of 24 seats and made 1 report(s)\n"
			if svc.local {
				want = svc.name + ": 1 process(es) sold 12 of 12 seats and made 1 report(s)\n"
			}
			if out.String() != want {
				t.Errorf("it printed %q, want %q", &out, want)
			}
		})
	}
}

// Without a lock, seats are sold twice: so the number of those that are left shows whether a locker holds.
func TestSalesThatMeetAreLost(t *testing.T) {
	s := settings{sales: 40, box: t.TempDir()}
	b := box(s.box)
	if err := b.fill(s.sales); err != nil {
		t.Fatal(err)
	}
	nobody := service{open: func(context.Context, string) (lock.Locker, func() error, error) {
		return unlocked{}, func() error { return nil }, nil
	}}
	err := sellFor(t.Context(), nobody, s)
	if left, readErr := b.left(); err == nil && readErr == nil && left == 0 {
		t.Error("all sales were booked without a lock")
	}
}

// unlocked gives everybody every lock.
type unlocked struct{}

func (unlocked) Acquire(ctx context.Context, _ lock.Request) (lock.Hold, error) {
	return given{ctx}, nil
}

type given struct{ ctx context.Context }

func (g given) Context() context.Context      { return g.ctx }
func (g given) Release(context.Context) error { return nil }

func TestFlagsThatDoNotGoTogether(t *testing.T) {
	for _, tt := range []struct{ args, want string }{
		{"-locker consul", "there are memory, redis"},
		{"-locker redis", "needs -addr, such as redis://localhost:6379, or -start"},
		{"-locker redis -start -addr redis://localhost:6379", "give one of them"},
		{"-locker postgres -addr postgres://%zz -sales 1", "postgres at"},
		{"-sales many", "invalid value"},
	} {
		var out strings.Builder
		err := run(t.Context(), strings.Fields(tt.args), &out)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("run(%s) = %v, want %q", tt.args, err, tt.want)
		}
	}
}
