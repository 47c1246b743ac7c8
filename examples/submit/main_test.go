package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/examples/internal/exampletest"
	"github.com/latchkey-go/latchkey/middleware/idempotency"
)

// Two instances with a client of their own each, one shop, and every order sent twenty times at once, until it is answered.
func TestEachOrderIsSoldOnce(t *testing.T) {
	var s shop
	store := idempotency.NewMemory(0)
	var instances []string
	for _, client := range exampletest.Clients(t, 2) {
		h, err := newHandler(client, store, &s)
		if err != nil {
			t.Fatal(err)
		}
		server := httptest.NewServer(h)
		defer server.Close()
		instances = append(instances, server.URL)
	}
	var mu sync.Mutex
	first, told := 0, map[string]map[string]int{} // by key and answer
	var all sync.WaitGroup
	for i := range 60 {
		all.Go(func() {
			key := []string{"a", "b", "c"}[i%3]
			for {
				status, replayed, body := send(t, instances[i%2], key)
				if status == http.StatusConflict || status == http.StatusServiceUnavailable { // in flight, or a busy machine's Redis was silent
					time.Sleep(20 * time.Millisecond)
					continue
				}
				mu.Lock()
				defer mu.Unlock()
				if told[key] == nil {
					told[key] = make(map[string]int)
				}
				if told[key][body]++; !replayed {
					first++
				}
				return
			}
		})
	}
	all.Wait()
	if s.sold != 3 || first != 3 {
		t.Errorf("%d orders sold and %d answered by the handler, want 3", s.sold, first)
	}
	for key, answers := range told {
		if len(answers) != 1 {
			t.Errorf("key %q was answered with %v, want one answer", key, answers)
		}
	}
}

func send(t *testing.T, url, key string) (status int, replayed bool, body string) {
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/orders", strings.NewReader(`{"item":"tea"}`))
	if err != nil {
		t.Error(err)
		return 0, false, ""
	}
	r.SetBasicAuth("ann", "secret")
	r.Header.Set("Idempotency-Key", key)
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Error(err)
		return 0, false, ""
	}
	defer res.Body.Close()
	var text strings.Builder
	if err := res.Write(&text); err != nil {
		t.Error(err)
	}
	_, body, _ = strings.Cut(text.String(), "\r\n\r\n")
	return res.StatusCode, res.Header.Get("Idempotency-Replayed") == "true", body
}

func TestNoKeyNoOrder(t *testing.T) {
	var s shop
	h, err := newHandler(exampletest.Clients(t, 1)[0], idempotency.NewMemory(0), &s)
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/orders", strings.NewReader(`{"item":"tea"}`)))
	if w.Code != http.StatusBadRequest || s.sold != 0 {
		t.Errorf("status %d, %d orders sold, want 400 and none", w.Code, s.sold)
	}
}
