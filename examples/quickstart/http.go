package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/middleware"
	"github.com/latchkey-go/latchkey/middleware/ginguard"
)

// maxBody bounds the bodies of requests, in bytes.
const maxBody = 64 << 10

// newHTTP returns the bank as a gin server. Like all declarations here, one with a mistake panics, and so at start.
func newHTTP(bank *Bank, locker lock.Locker, in guard.Option) http.Handler {
	transfer := guard.Must(ginguard.New(transferGuard(locker, in), middleware.Body[TransferRequest](),
		middleware.BodyIsJSON())) // as handle binds JSON whatever the type says
	statement := guardStatement(locker, in, bank.Statement)
	orders := guard.Must(bindOrders(locker, in, bank))

	r := gin.New()
	r.Use(gin.Recovery())
	r.POST("/transfers", transfer, handle(bank.Transfer))
	r.POST("/accounts/:account/statements", handle(statement))
	r.POST("/orders/:order/payments", handle(orders.Pay))
	r.GET("/records", func(c *gin.Context) { c.JSON(http.StatusOK, bank.snapshot()) })
	return http.MaxBytesHandler(r, maxBody)
}

// handle makes a handler of f. The request comes from the JSON body, if there is one, and the path.
func handle[Req, Res any](f func(context.Context, Req) (Res, error)) gin.HandlerFunc {
	return func(c *gin.Context) {
		var req Req
		if err := bind(c, &req); err != nil {
			misread(c, err)
			return
		}
		res, err := f(c.Request.Context(), req)
		if err != nil {
			refuse(c, err)
			return
		}
		c.JSON(http.StatusOK, res)
	}
}

func bind(c *gin.Context, req any) error {
	if c.Request.ContentLength != 0 {
		if err := c.ShouldBindJSON(req); err != nil {
			return err
		}
	}
	return c.ShouldBindUri(req)
}

func misread(c *gin.Context, err error) {
	if e, ok := errors.AsType[*http.MaxBytesError](err); ok {
		problem(c, http.StatusRequestEntityTooLarge, fmt.Sprintf("the body is larger than %d bytes", e.Limit))
		return
	}
	problem(c, http.StatusBadRequest, "the body is not the JSON that is wanted here")
}

// refuse answers for errors of the bank and of the guards around its functions; for a guard in front of a handler the
// middleware does that. The guards' come first, as an error can be both: a lost lock, and what the bank said then.
func refuse(c *gin.Context, err error) {
	switch {
	case ginguard.Answer(c, err):
	case errors.Is(err, errUnknown):
		problem(c, http.StatusNotFound, err.Error())
	case errors.Is(err, errAmount), errors.Is(err, errSame), errors.Is(err, errFunds):
		problem(c, http.StatusUnprocessableEntity, err.Error())
	default:
		problem(c, http.StatusInternalServerError, "the bank could not do it")
	}
}

func problem(c *gin.Context, status int, detail string) {
	c.Header("Content-Type", "application/problem+json")
	c.JSON(status, gin.H{"title": http.StatusText(status), "status": status, "detail": detail})
}
