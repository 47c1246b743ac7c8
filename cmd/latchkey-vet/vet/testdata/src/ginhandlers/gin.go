// Package ginhandlers has handlers of gin.
package ginhandlers

import (
	"github.com/gin-gonic/gin"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/middleware"
	"github.com/latchkey-go/latchkey/middleware/ginguard"
)

func handlers(l lock.Locker) {
	settle := guard.Must(guard.New(l, guard.Name("settle"), guard.Key("order:#{user}:#{path.id}"))) // want `unknown name user`
	_, _ = ginguard.New(settle, ginguard.Value[string]("user"))
	_, _ = ginguard.New(settle, ginguard.Value[string]("usr"))
	_, _ = ginguard.New(settle, ginguard.Value[string]("user"), middleware.Pattern("/orders/:id")) // want `write "/orders/{id}"`
}

type Elsewhere struct {
	Settle gin.HandlerFunc    `route:"POST /orders/:id" guard:"order:#{user}:#{path.id}"`
	Cancel func(*gin.Context) `route:"POST /orders/:id" guard:"order:#{path.idd}"` // want `unknown name idd of path, did you mean id\?`
	Purge  gin.HandlerFunc    `route:"POST /orders/{id}" guard:"order:#{path.id}"` // want `route "POST /orders/{id}" is not in gin's spelling: write "POST /orders/:id"`
}

type API struct {
	Settle gin.HandlerFunc `route:"POST /orders/:id" guard:"order:#{user}:#{path.id}"`
	Typo   gin.HandlerFunc `route:"POST /orders/:id" guard:"order:#{usr}:#{path.id}"` // want `unknown name usr, did you mean user\?`
}

func bind(l lock.Locker, api *API) error {
	return ginguard.Bind(guard.Must(guard.New(l)), api, ginguard.Value[string]("user"))
}
