package main

import (
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/latchkey-go/latchkey/internal/redistest"
)

func TestConsoleServesThePageToThisMachine(t *testing.T) {
	s := redistest.Start(t)
	stock(t, s.Client(t))
	p := start(t, at(s), "console", "--listen", "127.0.0.1:0")
	address := p.out.await(t, "http://127.0.0.1:")
	get := func(host string) (int, string) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = host
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer.StatusCode, string(body)
	}
	eventually(t, "the lock is on the page", func() bool {
		status, body := get("")
		return status == http.StatusOK && strings.Contains(body, "order:42")
	})
	if status, body := get("attacker.example"); status == http.StatusOK || strings.Contains(body, "order:42") {
		t.Errorf("a name that points here is answered with %d, %s", status, body)
	}
	http.DefaultClient.CloseIdleConnections()
	p.signal(syscall.SIGTERM)
	if status := p.status(); status != 143 {
		t.Errorf("status %d, want 143", status)
	}
	if status, _, said := result(t, at(s), "console", "--listen", "0.0.0.0:0"); status != 64 || !strings.Contains(said, "of this machine alone") {
		t.Errorf("for others: status %d, %s", status, said)
	}
}
