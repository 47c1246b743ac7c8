package guard_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/redisson"
)

// What was done by hand is said in the log and in the error, with the name and the reason.
func TestLogSaysWhatWasDoneByHand(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	client, err := redisson.New(s.Client(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	var log bytes.Buffer
	g := guard.Must(guard.New(client, guard.Name("pay"), guard.Key("order"), guard.OneKey(), guard.Log(slog.New(slog.NewTextHandler(&log, nil)))))
	pay := guard.Must(guard.Func(g, func(ctx context.Context, _ struct{}) (struct{}, error) {
		time.Sleep(200 * time.Millisecond) // the client listens
		if ok, err := client.Free(ctx, redisson.Freed{Key: "order", Who: "ann", Reason: "it hangs, ticket 7"}); !ok || err != nil {
			t.Errorf("Free = %v, %v", ok, err)
		}
		<-ctx.Done()
		return struct{}{}, context.Cause(ctx)
	}))
	if _, err = pay(t.Context(), struct{}{}); err == nil || !strings.Contains(err.Error(), "freed by hand (ann: it hangs, ticket 7)") {
		t.Errorf("the error of a call whose lock was freed is %v", err)
	}
	if err := client.Hold(t.Context(), "order", time.Hour, "ann", "new disks"); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(30 * time.Second); ; { // a busy machine may not answer in time
		if _, err = pay(t.Context(), struct{}{}); err != nil && strings.Contains(err.Error(), "held by ann: new disks") {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("the error of a call that meets a lock held by hand is %v", err)
		}
	}
	for _, want := range []string{"freed by hand (ann: it hangs, ticket 7)", "held by ann: new disks"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log has no %q:\n%s", want, log.String())
		}
	}
}
