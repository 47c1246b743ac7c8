package main

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// The console shows the bank's locks and its guards, on the embedded Redis, too.
func TestConsole(t *testing.T) {
	s, locker := start(t, "")
	hold(t, locker, "account:alice")
	page, err := newConsole(s, locker)
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(page)
	defer web.Close()
	for _, tt := range []struct{ page, want string }{
		{"/", "account:alice"}, {"/lock?key=account:alice", "holds it"}, {"/lock?key=account:alice", "Free this lock"}, {"/guards", "grpc.transfer"}, {"/guards", "Orders.Pay"},
	} {
		res, err := http.Get(web.URL + tt.page)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if err != nil || res.StatusCode != http.StatusOK || !strings.Contains(string(body), tt.want) {
			t.Errorf("%s: %s, %v, want %q in\n%s", tt.page, res.Status, err, tt.want, body)
		}
	}
}

// Visitors keep the bank busy until they are told to stop.
func TestVisit(t *testing.T) {
	s, _ := start(t, "")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	calls, n := client{web: http.DefaultClient, base: "http://" + s.httpAddr(), bank: bankClient(t, s)}.calls(), 0
	for i, c := range calls {
		calls[i] = func(ctx context.Context, which int) error {
			if n++; n == 10 {
				stop()
			}
			return c(ctx, which)
		}
	}
	visit(ctx, calls)
	if n != 10 || updates(s.bank) == 0 {
		t.Errorf("%d requests, %d updates", n, updates(s.bank))
	}
}
