// Ginuser guards a wallet behind gin: one request at a time for each logged-in user, whatever the client sends.
//
//	go -C examples run ./ginuser                                   # with locks of this process
//	go -C examples run ./ginuser --redis redis://localhost:6379     # with locks that other machines see
//	curl -i -u alice:wonderland -X POST localhost:8080/wallet/spend/30
package main

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/latchkey-go/latchkey/examples/internal/example"
	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/middleware/ginguard"
)

func main() {
	example.Main(func(ctx context.Context, locker lock.Locker, out io.Writer) error {
		gin.SetMode(gin.ReleaseMode)
		handler, err := newHandler(locker, &wallets{cents: map[string]int{"alice": 100, "bob": 100}})
		if err != nil {
			return err
		}
		return example.Serve(ctx, handler, out)
	})
}

// newHandler locks the wallet of gin.AuthUserKey, which authentication has set. A key made of what the client sends, such as
// a header, would let anybody lock anybody's wallet.
func newHandler(locker lock.Locker, w *wallets) (http.Handler, error) {
	g, err := guard.New(locker, guard.Name("wallet.spend"), guard.Key("wallet:#{user}"), guard.Wait(5*time.Second))
	if err != nil {
		return nil, err
	}
	oneAtATime, err := ginguard.New(g, ginguard.Value[string](gin.AuthUserKey))
	if err != nil {
		return nil, err
	}
	r := gin.New()
	mine := r.Group("/wallet", gin.BasicAuth(gin.Accounts{"alice": "wonderland", "bob": "builder"}), oneAtATime)
	mine.POST("/spend/:cents", w.spend)
	return r, nil
}

// wallets stands for a store that can't subtract by itself.
type wallets struct {
	mu    sync.Mutex
	cents map[string]int
}

func (w *wallets) get(user string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.cents[user]
}

func (w *wallets) set(user string, cents int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cents[user] = cents
}

func (w *wallets) spend(c *gin.Context) {
	user := c.GetString(gin.AuthUserKey)
	cents, err := strconv.Atoi(c.Param("cents"))
	if err != nil || cents < 1 {
		c.String(http.StatusBadRequest, "cents is a number of at least 1\n")
		return
	}
	have := w.get(user)
	if have < cents {
		c.String(http.StatusPaymentRequired, "%d cents are all you have\n", have)
		return
	}
	select {
	case <-time.After(10 * time.Millisecond): // the payment
	case <-c.Request.Context().Done():
		return // the client has gone or the lock is lost: nothing was spent
	}
	w.set(user, have-cents)
	c.String(http.StatusOK, "%d cents are left\n", have-cents)
}
