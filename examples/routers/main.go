// Command routers sells from one stock behind three routers at once: net/http's mux, chi and two versions of echo. It runs by
//
//	go -C examples run ./routers
//
// All of them guard the same handler with the same declaration, and so exclude each other: for one tenant and product, one
// sale at a time. The key is made of what authentication found out and of a value in the path.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/memlock"
	"github.com/latchkey-go/latchkey/middleware"
)

func main() {
	if err := run(os.Stdout, memlock.New()); err != nil { // with a redisson client, any number of programs
		log.Fatal(err)
	}
}

// newGuard declares what all routers put in front of the handler.
func newGuard(locker lock.Locker) (func(http.Handler) http.Handler, error) {
	g, err := guard.New(locker,
		guard.Name("stock.sell"),
		guard.Key("stock:#{claims.Tenant}:#{path.product}"),
		guard.Wait(10*time.Second),
	)
	if err != nil {
		return nil, err
	}
	return middleware.New(g,
		middleware.WithFacts("claims", claimsOf),
		middleware.Pattern("POST /stock/{product}"),
	)
}

// run has customers at each router buy pens at the same time, and prints what is left.
func run(out io.Writer, locker lock.Locker) error {
	guarded, err := newGuard(locker)
	if err != nil {
		return err
	}
	const each = 15
	pens := 4 * each
	s := &shop{left: map[string]*int{"acme/pen": &pens}}
	var customers sync.WaitGroup
	var mu sync.Mutex
	var failed error
	for _, router := range []http.Handler{newMux(s, guarded), newChi(s, guarded), newEcho(s, guarded), newEcho5(s, guarded)} {
		server := httptest.NewServer(router)
		defer server.Close()
		for range each {
			customers.Go(func() {
				if err := buy(server.URL, "acme", "pen"); err != nil {
					mu.Lock()
					defer mu.Unlock()
					failed = errors.Join(failed, err)
				}
			})
		}
	}
	customers.Wait()
	fmt.Fprintf(out, "%d pens sold by each of 4 routers, %d left\n", each, pens)
	return failed
}

// buy buys one piece. It is a customer of tenant.
func buy(url, tenant, product string) error {
	r, err := http.NewRequest(http.MethodPost, url+"/stock/"+product, nil)
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+tenant)
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(res.Body)
		return fmt.Errorf("status %d: %s", res.StatusCode, body)
	}
	return nil
}

// shop has a stock, by tenant and product, and no lock of its own.
type shop struct{ left map[string]*int }

// sell is the handler behind each router.
func (s *shop) sell(w http.ResponseWriter, r *http.Request) {
	claims, err := claimsOf(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	stock, ok := s.left[claims.Tenant+"/"+r.PathValue("product")]
	if !ok || *stock == 0 {
		http.Error(w, "sold out", http.StatusGone)
		return
	}
	left := *stock - 1
	time.Sleep(time.Millisecond) // long enough for another customer to read the same number
	*stock = left
	fmt.Fprintf(w, "%d left\n", left)
}

// Claims are what authentication knows of a request.
type Claims struct{ Tenant string }

type claimsKey struct{}

// authenticate stands in front of the guard, so that strangers can't hold locks.
func authenticate(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		tenant, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if !ok || tenant == "" {
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), claimsKey{}, Claims{tenant})))
	})
}

func claimsOf(r *http.Request) (Claims, error) {
	claims, ok := r.Context().Value(claimsKey{}).(Claims)
	if !ok {
		return claims, errors.New("the guard stands in front of authentication")
	}
	return claims, nil
}
