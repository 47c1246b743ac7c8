package redistest

import (
	"errors"
	"testing"

	"github.com/latchkey-go/latchkey/internal/services"
)

// A server that can't have its port must not pass for the other one that has it, and starts on the next port.
func TestStartOnATakenPort(t *testing.T) {
	first := Start(t)
	_, taken := first.HostPort()
	tries := 0
	second := launch(t, nil, func(port string) []string {
		if tries++; tries == 1 {
			port = taken
		}
		return append(append([]string{}, first.args[0], "--port", port), first.args[3:]...)
	})
	if tries != 2 || second.Addr == first.Addr {
		t.Errorf("%d tries, the second server is at %s, want 2 and not %s", tries, second.Addr, first.Addr)
	}
	if err := second.Client(t).Ping(t.Context()).Err(); err != nil {
		t.Errorf("ping: %v", err)
	}
}

func TestAnswersOfAnotherServerDoNotCount(t *testing.T) {
	first := Start(t)
	if _, err := Run(t.Context(), first.Addr, first.command()); !errors.Is(err, services.ErrEnded) {
		t.Errorf("Run on a taken port = %v, want ErrEnded", err)
	}
}

// A port is given to one test only, also while nobody listens there yet.
func TestFreePortIsGivenOnce(t *testing.T) {
	seen := make(map[string]bool)
	for range 1000 {
		port := FreePort(t)
		if seen[port] {
			t.Fatalf("port %s was given twice", port)
		}
		seen[port] = true
	}
}
