package services

import (
	"errors"
	"net"
	"os"
	"testing"
	"time"
)

// starters are all services that this package starts.
var starters = []struct {
	name  string
	start Starter
}{
	{"postgres", Postgres},
	{"mariadb", MariaDB},
	{"zookeeper", ZooKeeper},
	{"redis", Redis},
	{"mongodb", MongoDB},
}

func TestServersStartPauseRestartAndLeaveNothing(t *testing.T) {
	for _, tt := range starters {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := Start(t, tt.name, tt.start, Options{})
			answers := func() bool {
				c, err := net.DialTimeout("tcp", s.Addr, time.Second)
				if err != nil {
					return false
				}
				_ = c.Close()
				return true
			}
			if !answers() {
				t.Fatalf("nobody listens at %s", s.Addr)
			}
			for _, step := range []func() error{s.Pause, s.Resume, s.Kill} {
				if err := step(); err != nil {
					t.Fatal(err)
				}
			}
			if answers() {
				t.Fatal("a killed server answers")
			}
			if err := s.Run(); err != nil {
				t.Fatal(err)
			}
			s.Stop()
			if answers() {
				t.Error("a stopped server answers")
			}
			if _, err := os.Stat(s.Dir); !os.IsNotExist(err) {
				t.Errorf("%s is left behind: %v", s.Dir, err)
			}
		})
	}
}

func TestRequired(t *testing.T) {
	t.Setenv("LATCHKEY_REQUIRE", "redis,postgres")
	for name, want := range map[string]bool{"postgres": true, "redis": true, "mariadb": false, "": false} {
		if got := Required(name); got != want {
			t.Errorf("Required(%q) = %v", name, got)
		}
	}
}

func TestEnsembleFindsANewLeader(t *testing.T) {
	all, err := ZooKeeperEnsemble(3, Options{})
	if errors.Is(err, ErrMissing) && !Required("zookeeper") {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	leaders := func() (n int) {
		for _, s := range all {
			if mode, _ := ZooKeeperMode(t.Context(), s.Addr); mode == "leader" {
				n++
			}
		}
		return n
	}
	if n := leaders(); n != 1 {
		t.Errorf("%d leaders of 3 servers", n)
	}
	for _, s := range all {
		t.Cleanup(s.Stop)
		if mode, _ := ZooKeeperMode(t.Context(), s.Addr); mode == "leader" {
			if err := s.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	for leaders() != 1 && t.Context().Err() == nil {
		time.Sleep(20 * time.Millisecond)
	}
}

func TestOnlyNamedServicesAreStarted(t *testing.T) {
	t.Setenv("LATCHKEY_SERVICES", "none,other")
	for _, tt := range starters {
		if s, err := tt.start(Options{}); !errors.Is(err, ErrMissing) {
			t.Errorf("%s = %v, %v, want %v", tt.name, s, err, ErrMissing)
		}
	}
}
