package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/latchkey-go/latchkey/examples/internal/exampletest"
)

// Two instances with a client of their own each, one shop, and every order sent twenty times at once.
func TestEachOrderIsSoldOnce(t *testing.T) {
	s := &shop{orders: make(map[string]Order)}
	var instances []string
	for _, client := range exampletest.Clients(t, 2) {
		h, err := newHandler(client, s)
		if err != nil {
			t.Fatal(err)
		}
		server := httptest.NewServer(h)
		defer server.Close()
		instances = append(instances, server.URL)
	}
	var mu sync.Mutex
	ids := make(map[string]map[string]int) // by key and order id
	created := 0
	var all sync.WaitGroup
	for i := range 60 {
		all.Go(func() {
			key := []string{"a", "b", "c"}[i%3]
			status, o := send(t, instances[i%2], key)
			mu.Lock()
			defer mu.Unlock()
			if ids[key] == nil {
				ids[key] = make(map[string]int)
			}
			ids[key][o.ID]++
			if status == http.StatusCreated {
				created++
			}
		})
	}
	all.Wait()
	if s.sold != 3 || created != 3 {
		t.Errorf("%d orders sold and %d answered as new, want 3", s.sold, created)
	}
	for key, got := range ids {
		if len(got) != 1 {
			t.Errorf("key %q was answered with the orders %v, want one", key, got)
		}
	}
}

func send(t *testing.T, url, key string) (status int, o Order) {
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/orders", strings.NewReader(`{"Item":"tea"}`))
	if err != nil {
		t.Error(err)
		return 0, o
	}
	r.Header.Set("Idempotency-Key", key)
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Error(err)
		return 0, o
	}
	defer res.Body.Close()
	if err := json.NewDecoder(res.Body).Decode(&o); err != nil {
		t.Errorf("status %d: %v", res.StatusCode, err)
	}
	return res.StatusCode, o
}

func TestNoKeyNoOrder(t *testing.T) {
	s := &shop{orders: make(map[string]Order)}
	h, err := newHandler(exampletest.Clients(t, 1)[0], s)
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/orders", strings.NewReader(`{"Item":"tea"}`)))
	if w.Code != http.StatusBadRequest || s.sold != 0 {
		t.Errorf("status %d, %d orders sold, want 400 and none", w.Code, s.sold)
	}
}
