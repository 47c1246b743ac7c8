package main

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/memlock"
)

// TestRoutersExcludeEachOther is the program: without the guard, customers read the same number and pens are left over.
func TestRoutersExcludeEachOther(t *testing.T) {
	var out strings.Builder
	if err := run(&out, memlock.New()); err != nil {
		t.Fatal(err)
	}
	if want := "15 pens sold by each of 4 routers, 0 left\n"; out.String() != want {
		t.Errorf("printed %q, want %q", out.String(), want)
	}
}

// keys is a memlock that notes what was locked.
type keys struct {
	*memlock.Locker
	mu  sync.Mutex
	got []string
}

func (k *keys) Acquire(ctx context.Context, r lock.Request) (lock.Hold, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.got = append(k.got, r.Key)
	return k.Locker.Acquire(ctx, r)
}

func TestEachRouter(t *testing.T) {
	for _, tt := range []struct {
		name string
		new  func(*shop, func(http.Handler) http.Handler) http.Handler
	}{{"net/http", newMux}, {"chi", newChi}, {"echo", newEcho}, {"echo, version 5", newEcho5}} {
		t.Run(tt.name, func(t *testing.T) {
			locker := &keys{Locker: memlock.New()}
			guarded, err := newGuard(locker)
			if err != nil {
				t.Fatal(err)
			}
			one := 1
			server := httptest.NewServer(tt.new(&shop{map[string]*int{"acme/pen": &one}}, guarded))
			defer server.Close()
			for _, want := range []string{"200 0 left", "410 sold out"} {
				if got := post(t, server.URL+"/stock/pen", "Bearer acme"); got != want {
					t.Errorf("POST = %q, want %q", got, want)
				}
			}
			if got := post(t, server.URL+"/stock/pen", ""); got != "401 who are you?" {
				t.Errorf("a stranger gets %q", got)
			}
			if got := post(t, server.URL+"/stok/pen", "Bearer acme"); !strings.HasPrefix(got, "404 ") {
				t.Errorf("an unknown route gets %q", got)
			}
			if want := []string{"stock:acme:pen", "stock:acme:pen"}; !slices.Equal(locker.got, want) {
				t.Errorf("keys = %q, want %q", locker.got, want)
			}
		})
	}
}

func post(t *testing.T, url, authorization string) string {
	t.Helper()
	r, err := http.NewRequest(http.MethodPost, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", authorization)
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.Status[:4] + strings.TrimSpace(string(body))
}
