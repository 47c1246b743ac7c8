package redisson_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson"
)

// The password is rolled while a client holds several locks, and the client does not have the new one. Renewals that travel together say so
// like one that travels alone: in the cause with which the holds end, and in the metrics.
func TestRolledPasswordIsTheCause(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ user, roll string }{
		"requirepass": {"", "config set requirepass new"},
		"ACL":         {"app", "acl setuser app resetpass >new"},
	} {
		for _, holds := range []int{1, 2, 60} {
			t.Run(fmt.Sprintf("%s, %d holds", name, holds), func(t *testing.T) {
				t.Parallel()
				s, m := redistest.Start(t), newMeters()
				admin := s.Client(t)
				do := func(line string) {
					var args []any
					for w := range strings.FieldsSeq(line) {
						args = append(args, w)
					}
					check(t, admin.Do(t.Context(), args...).Err())
				}
				do("acl setuser app on >old allkeys allchannels allcommands")
				do("config set requirepass old")
				c, err := redisson.Open(fmt.Sprintf("redis://%s:old@%s", tt.user, s.Addr), m.option, redisson.WatchdogTimeout(2*time.Second))
				check(t, err)
				t.Cleanup(func() { c.Close() })
				var held []lock.Hold
				for i := range holds {
					r := lock.Request{Key: fmt.Sprint(i), Kind: []lock.Kind{lock.Exclusive, lock.Fair, lock.Fenced}[i%3]}
					held = append(held, acquire(t.Context(), t, c, r))
				}
				do(tt.roll)
				do("client kill type normal skipme yes")
				for _, h := range held {
					cause := awaitEnd(t, h.Context(), 10*time.Second)
					if !errors.Is(cause, lock.ErrLost) || !errors.Is(cause, lock.ErrRefused) || !strings.Contains(cause.Error(), "WRONGPASS") {
						t.Fatalf("the hold ended with %v, want a loss for WRONGPASS", cause)
					}
				}
				if _, err := c.Acquire(context.Background(), lock.Request{Key: "k", Wait: 10 * time.Second}); !errors.Is(err, lock.ErrRefused) {
					t.Errorf("Acquire = %v, want ErrRefused", err)
				}
				var refused, others int64 // a question that was on its way when the connections were cut, or too slow, has no answer
				for labels, n := range m.points(t, "question.duration") {
					if strings.Contains(labels, "error.type=refused") {
						refused += n
					} else if strings.Contains(labels, "error.type") {
						others += n
					}
				}
				if refused <= 2*others {
					t.Errorf("%d questions were refused, and %d failed otherwise", refused, others)
				}
			})
		}
	}
}
