package setnxlock

import (
	"context"
	"errors"
	"testing"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/lock/setnxlock"
)

// A program with the library locks "order:" + id, and ours by a template with raw: whatever the id is, each keeps the other out.
func TestGuardSharesTheKeysOfTheLibrary(t *testing.T) {
	for peer, preset := range map[string]setnxlock.Option{"redislock": setnxlock.Redislock(), "redsync": setnxlock.Redsync()} {
		t.Run(peer, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t)
			locker, err := setnxlock.New(s.Client(t), preset)
			if err != nil {
				t.Fatal(err)
			}
			g, err := guard.New(locker, guard.Name("order.settle"), guard.Key("order:#{raw(req)}"))
			if err != nil {
				t.Fatal(err)
			}
			library := start(t, s.Addr, peer)
			settle, err := guard.Action(g, func(_ context.Context, id string) error {
				if got := library.ask("take", "order:"+id, "0s", "1m"); got != "busy" {
					t.Errorf("order %q: two holders, as %s gets in beside the guard: %s", id, peer, got)
					library.expect(t, "ok", "give", "order:"+id)
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			for _, id := range []string{"42", "a b", "50%", "{x}", "a:b", "Grün-東京", "%20", " 7 "} {
				if err := settle(t.Context(), id); err != nil {
					t.Errorf("order %q: %v", id, err)
				}
				library.expect(t, "ok", "take", "order:"+id, "0s", "1m")
				if err := settle(t.Context(), id); !errors.Is(err, guard.ErrBusy) {
					t.Errorf("order %q: two holders, as the guard gets in beside %s (%v)", id, peer, err)
				}
				library.expect(t, "ok", "give", "order:"+id)
			}
		})
	}
}
