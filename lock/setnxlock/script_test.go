package setnxlock

import (
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/redis/go-redis/v9"
)

// Each script may come twice, and after newer ones. What it leaves is what its header promises.
func TestScriptsMayComeTwice(t *testing.T) {
	const mine, others = "mine", "others"
	for _, tt := range []struct {
		name        string
		value       string // of the key before; none if empty
		lease       time.Duration
		script      *script
		args        []any
		code        int64
		wantValue   string
		least, most time.Duration // what is left of the lease
	}{
		{"a take of a free lock", "", 0, takeScript, []any{mine, 60_000}, yes, mine, 50 * time.Second, time.Minute},
		{"a take of one's own lock", mine, time.Minute, takeScript, []any{mine, 1000}, yes, mine, 50 * time.Second, time.Minute},
		{"a take for longer", mine, time.Second, takeScript, []any{mine, 60_000}, yes, mine, 50 * time.Second, time.Minute},
		{"a take of others' lock", others, time.Minute, takeScript, []any{mine, 1000}, no, others, 50 * time.Second, time.Minute},
		{"an extension", mine, time.Second, extendScript, []any{mine, 60_000}, yes, mine, 50 * time.Second, time.Minute},
		{"a shorter extension", mine, time.Minute, extendScript, []any{mine, 1000}, yes, mine, 50 * time.Second, time.Minute},
		{"an extension of nothing", "", 0, extendScript, []any{mine, 1000}, no, "", 0, 0},
		{"an extension of others' lock", others, time.Minute, extendScript, []any{mine, 1000}, no, others, 50 * time.Second, time.Minute},
		{"a release of others' lock", others, time.Minute, freeScript, []any{mine, "", 0}, no, others, 50 * time.Second, time.Minute},
		{"a release after a while", mine, time.Minute, freeScript, []any{mine, "", 10_000}, yes, mine, 5 * time.Second, 10 * time.Second},
		{"a late release after a while", others, time.Minute, freeScript, []any{mine, "", 10_000}, no, others, 50 * time.Second, time.Minute},
		{"a look", others, time.Minute, peekScript, nil, no, others, 50 * time.Second, time.Minute},
		{"a look at nothing", "", 0, peekScript, nil, yes, "", 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			rdb := redistest.Any(t).Client(t)
			if tt.value != "" {
				rdb.Set(t.Context(), "k", tt.value, tt.lease)
			}
			for range 2 {
				a, err := readAnswer(rdb.Eval(t.Context(), tt.script.source, []string{"k"}, tt.args...))
				if err != nil || a.code != tt.code {
					t.Fatalf("answer %+v, %v, want %d", a, err, tt.code)
				}
				checkKey(t, rdb, tt.wantValue, tt.least, tt.most)
			}
		})
	}
}

func checkKey(t *testing.T, rdb *redis.Client, value string, least, most time.Duration) {
	t.Helper()
	if got := rdb.Get(t.Context(), "k").Val(); got != value {
		t.Errorf("value = %q, want %q", got, value)
	}
	if value == "" {
		return
	}
	if left := rdb.PTTL(t.Context(), "k").Val(); left < least || left > most {
		t.Errorf("%v are left, want %v to %v", left, least, most)
	}
}

// What no script of ours answers is an error, and no yes.
func TestAnswersAreRead(t *testing.T) {
	rdb := redistest.Any(t).Client(t)
	for _, lua := range []string{"return {}", "return {2}", "return {-2}", "return {'1'}", "return 1", "return false", "return redis.error_reply('ERR no')", "return {{1}}"} {
		if a, err := readAnswer(rdb.Eval(t.Context(), lua, []string{"k"})); err == nil {
			t.Errorf("%s is read as %+v", lua, a)
		}
	}
}
