package main

import (
	"fmt"
	"os/exec"
	"testing"

	"github.com/latchkey-go/latchkey/internal/redistest"
)

func TestRehearseSparesTheRedisOfOthers(t *testing.T) {
	if _, err := exec.LookPath("redis-cli"); err != nil {
		redistest.Missing(t, err)
	}
	s := redistest.Start(t)
	rdb := s.Client(t)
	for i := range 20 {
		rdb.Set(t.Context(), fmt.Sprint("k", i), 1, 0)
	}
	if err := run([]string{"-redis", "redis://" + s.Addr, "FLUSHALL"}); err != nil || rdb.DBSize(t.Context()).Val() != 0 {
		t.Errorf("FLUSHALL = %v, and %d keys are left", err, rdb.DBSize(t.Context()).Val())
	}
	for i := range 21 {
		rdb.Set(t.Context(), fmt.Sprint("k", i), 1, 0)
	}
	for _, url := range []string{"redis://" + s.Addr, "redis://192.0.2.1:6379", "redis://redis.example:6379"} {
		if err := run([]string{"-redis", url, "FLUSHALL"}); err == nil {
			t.Errorf("it does harm to %s", url)
		}
	}
	if n := rdb.DBSize(t.Context()).Val(); n != 21 {
		t.Errorf("%d keys are left, want 21", n)
	}
}
