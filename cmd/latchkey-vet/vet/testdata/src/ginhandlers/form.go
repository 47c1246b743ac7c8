package ginhandlers

import (
	"github.com/gin-gonic/gin"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/middleware"
	"github.com/latchkey-go/latchkey/middleware/ginguard"
)

type order struct {
	ID   string `form:"order" json:"order,omitempty"`
	Note string `json:"note"`
}

func forms(l lock.Locker, r *gin.Engine) {
	byOrder := guard.Must(ginguard.New(guard.Must(guard.New(l, guard.Name("order"), guard.Key("order:#{query.order}"))), middleware.QueryOnly()))
	r.POST("/orders", byOrder, settle)
	r.GET("/orders", byOrder, func(c *gin.Context) { _ = c.ShouldBindQuery(new(order)) })
	byPage := guard.Must(ginguard.New(guard.Must(guard.New(l, guard.Name("page"), guard.Key("page:#{query.page}")))))
	r.POST("/pages", byPage, func(c *gin.Context) { _ = c.ShouldBind(new(order)) })
	byNote := guard.Must(ginguard.New(guard.Must(guard.New(l, guard.Name("note"), guard.Key("note:#{query.note}")))))
	r.GET("/notes", byNote, func(c *gin.Context) { _ = c.ShouldBind(new(order)) })
}

func settle(c *gin.Context) {
	var o order
	if c.ShouldBind(&o) != nil { // want `guard "order" reads query.order, and ShouldBind prefers the body, which gets 415, or another key with QueryOnly: write form.order or body.order in the key, or ShouldBindQuery here`
		return
	}
	_ = c.ShouldBindJSON(&o)             // want `ShouldBindJSON prefers the body`
	_ = c.Request.PostFormValue("order") // want `PostFormValue`
	_ = c.PostForm("order")              // want `PostForm prefers`
	_ = c.PostForm("note")
}

type Forms struct {
	Settle gin.HandlerFunc `route:"POST /orders" guard:"order:#{query.order}"`
}

func bindForms(l lock.Locker) error {
	return ginguard.Bind(guard.Must(guard.New(l)), &Forms{Settle: func(c *gin.Context) {
		_ = c.BindJSON(&order{}) // want `guard "Forms.Settle" reads query.order`
	}})
}
