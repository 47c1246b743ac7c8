package handlers

import (
	"net/http"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/middleware"
)

func forms(l lock.Locker, mux *http.ServeMux) {
	order := guard.Must(guard.New(l, guard.Name("order"), guard.Key("order:#{query.order}"), guard.When("query['dry'] != 'yes'")))
	mw, _ := middleware.New(order)
	mux.Handle("POST /settle", mw(http.HandlerFunc(settle)))
	mux.Handle("GET /settle", mw(http.HandlerFunc(got)))

	url := guard.Must(middleware.New(order, middleware.QueryOnly()))
	mux.Handle("GET /many", url(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_ = r.FormValue("order") // want `guard "order" reads query.order, and FormValue prefers the body`
		_ = r.URL.Query().Get("order")
	})))

	form := guard.Must(guard.New(l, guard.Name("form"), guard.Key("order:#{form.order}")))
	mux.Handle("POST /form", guard.Must(middleware.New(form))(http.HandlerFunc(read)))
	mux.Handle("POST /other", http.HandlerFunc(read))
}

func settle(_ http.ResponseWriter, r *http.Request) {
	_ = r.FormValue("order")   // want `guard "order" reads query.order, and FormValue prefers the body, which gets 415, or another key with QueryOnly: write form.order in the key, or read the query here`
	_ = r.PostFormValue("dry") // want `guard "order" reads query.dry, and PostFormValue`
	_ = r.FormValue("note")
}

// got has no form, as a GET with one gets 415.
func got(_ http.ResponseWriter, r *http.Request) { _ = r.FormValue("order") }

func read(_ http.ResponseWriter, r *http.Request) { _ = r.FormValue("order") }

type Forms struct {
	Settle http.HandlerFunc `route:"POST /orders" guard:"order:#{query.order}"`
	Cancel http.HandlerFunc `route:"POST /cancel" guard:"order:#{query.order}"`
	Get    http.HandlerFunc `route:"GET /orders" guard:"order:#{query.order}"`
	Other  http.HandlerFunc `route:"POST /other" guard:"order:#{form.order}"`
}

func bindForms(l lock.Locker) error {
	api := &Forms{Settle: posted, Get: got, Other: read}
	api.Cancel = func(_ http.ResponseWriter, r *http.Request) {
		_ = r.PostFormValue("order") // want `guard "Forms.Cancel" reads query.order`
	}
	return middleware.Bind(guard.Must(guard.New(l)), api)
}

func posted(_ http.ResponseWriter, r *http.Request) {
	_ = r.FormValue("order") // want `guard "Forms.Settle" reads query.order`
}
