package guard_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/guard/adapter"
	"github.com/latchkey-go/latchkey/keyexpr"
	"github.com/latchkey-go/latchkey/lock/memlock"
)

// Facts that people write as JSON are decoded into the types of the guard's own adapter.
func TestRegistryExplain(t *testing.T) {
	reg := newRegistry(t)
	g := guard.Must(guard.New(memlock.New(), guard.In(reg), guard.Name("order.settle"), guard.Key("order:#{req.ID}")))
	guard.Must(guard.Func(g, func(ctx context.Context, o Order) (string, error) { return "", nil }))
	for _, tt := range []struct{ name, facts, key, err, refused string }{
		{"order.settle", `{"req":{"ID":"7"}}`, "order:7", "", ""},
		{"order.settle", `{"req":{"id":"7"}}`, "order:7", "", ""},
		{"order.settle", `{"req":{}}`, "", "", "no key"},
		{"order.settle", `{}`, "", "", "req is not given"},
		{"order.settle", `{"req":{"id":7}}`, "", "", "cannot unmarshal number"},
		{"order.settle", `{"request":{}}`, "", `no fact is called "request" here`, ""},
		{"order.setle", `{}`, "", `did you mean order.settle`, ""},
	} {
		var facts map[string]json.RawMessage
		if err := json.Unmarshal([]byte(tt.facts), &facts); err != nil {
			t.Fatal(err)
		}
		e, err := reg.Explain(t.Context(), tt.name, facts)
		if tt.err != "" || err != nil {
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("Explain(%s, %s) = %v, want %s", tt.name, tt.facts, err, tt.err)
			}
			continue
		}
		if tt.refused != "" {
			if !errors.Is(e.Err, guard.ErrKey) || !strings.Contains(e.Err.Error(), tt.refused) {
				t.Errorf("Explain(%s, %s): %v, want ErrKey with %s", tt.name, tt.facts, e.Err, tt.refused)
			}
		} else if len(e.Keys) != 1 || e.Keys[0].Key != tt.key || !e.Keys[0].Known {
			t.Errorf("Explain(%s, %s) = %+v, want %s", tt.name, tt.facts, e, tt.key)
		}
	}
}

func TestRegistryKnowsTimes(t *testing.T) { synctest.Test(t, knowsTimes) }

func knowsTimes(t *testing.T) {
	reg := newRegistry(t)
	g := guard.Must(guard.New(memlock.New(), guard.In(reg), guard.Name("slow"), guard.Key("k:#{header.X}")))
	r := guard.Must(adapter.Prepare(g, keyexpr.Roots{"header": keyexpr.AnyName(), "method": keyexpr.TypeFor[string]()}))
	facts := func(string) (any, error) {
		return keyexpr.Lookup(func(string) (string, bool, error) { return "a", true, nil }), nil
	}
	for range 3 {
		if _, err := r.Run(t.Context(), facts, func(context.Context) error { time.Sleep(20 * time.Millisecond); return nil }); err != nil {
			t.Fatal(err)
		}
	}
	missing := func(string) (any, error) { return nil, http.ErrNoCookie }
	if _, err := r.Run(t.Context(), missing, func(context.Context) error { return nil }); err == nil {
		t.Fatal("a call without a key succeeded")
	}
	info := infos(reg)["slow"]
	if waits, holds := info.Waits.Count(), info.Holds.Count(); waits != 3 || holds != 3 {
		t.Errorf("%d waits and %d holds, want 3 of each, as the fourth call had no key", waits, holds)
	}
	if p := info.Holds.Quantile(.5); p < 20*time.Millisecond || p > 25*time.Millisecond {
		t.Errorf("half of the calls held for %v, want 20ms or up to a quarter more", p)
	}
	if got := strings.Join(info.Roots, " "); got != "header method" {
		t.Errorf("roots are %q", got)
	}
}
