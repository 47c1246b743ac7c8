package main

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/latchkey-go/latchkey/examples/internal/exampletest"
)

// Two instances, and more requests than the wallets can pay for: nobody spends a cent twice.
func TestNobodySpendsTwice(t *testing.T) {
	gin.SetMode(gin.TestMode)
	w := &wallets{cents: map[string]int{"alice": 100, "bob": 50}}
	var instances []string
	for _, client := range exampletest.Clients(t, 2) {
		h, err := newHandler(client, w)
		if err != nil {
			t.Fatal(err)
		}
		server := httptest.NewServer(h)
		defer server.Close()
		instances = append(instances, server.URL)
	}
	passwords := map[string]string{"alice": "wonderland", "bob": "builder"}
	var mu sync.Mutex
	paid := make(map[string]int)
	var all sync.WaitGroup
	for i := range 48 {
		all.Go(func() {
			user := []string{"alice", "bob"}[i%2]
			status := spend(t, instances[i/2%2], user, passwords[user])
			mu.Lock()
			defer mu.Unlock()
			switch status {
			case http.StatusOK:
				paid[user] += 10
			case http.StatusPaymentRequired:
			default:
				t.Errorf("%s: status %d", user, status)
			}
		})
	}
	all.Wait()
	if paid["alice"] != 100 || paid["bob"] != 50 || w.get("alice") != 0 || w.get("bob") != 0 {
		t.Errorf("paid %v, left %v, want all of 100 and 50 paid", paid, w.cents)
	}
}

func TestNobodyUnknownLocks(t *testing.T) {
	gin.SetMode(gin.TestMode)
	h, err := newHandler(exampletest.Clients(t, 1)[0], &wallets{})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(h)
	defer server.Close()
	if status := spend(t, server.URL, "alice", "guessed"); status != http.StatusUnauthorized {
		t.Errorf("status %d, want 401", status)
	}
}

func spend(t *testing.T, url, user, password string) (status int) {
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/wallet/spend/10", http.NoBody)
	if err != nil {
		t.Error(err)
		return 0
	}
	r.SetBasicAuth(user, password)
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Error(err)
		return 0
	}
	defer res.Body.Close()
	return res.StatusCode
}
