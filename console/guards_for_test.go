package console

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/lock/memlock"
	"github.com/latchkey-go/latchkey/middleware"
)

// prepare puts guards in front of handlers, as a program does.
func prepare(t *testing.T, reg *guard.Registry) {
	t.Helper()
	type transfer struct {
		From string `json:"from"`
		To   string `json:"to"`
	}
	l := memlock.New()
	for _, g := range []struct {
		guard *guard.Guard
		opts  []middleware.Option
	}{
		{guard.Must(guard.New(l, guard.In(reg), guard.Name("transfer"), guard.Key(`account:#{map([body.From, body.To], required(#, "two accounts"))}`))),
			[]middleware.Option{middleware.Body[transfer]()}},
		{guard.Must(guard.New(l, guard.In(reg), guard.Name("settle"), guard.Key("order:#{path.id}"), guard.Wait(2*time.Second), guard.Methods("POST"))),
			[]middleware.Option{middleware.Pattern("/orders/{id}/settle")}},
		{guard.Must(guard.New(l, guard.In(reg), guard.Name("tenant"), guard.Key(`t:#{header["X-Tenant"]}:#{cookie.session}`))), nil},
	} {
		guard.Must(middleware.New(g.guard, g.opts...))
	}
}

func serveHandler(t *testing.T, h http.Handler) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

// What would become of a call is said of locks, levels and rates in words of their own.
func TestKeyState(t *testing.T) {
	for want, k := range map[string]guard.KeyState{
		"":                          {Busy: true},
		"Redis did not answer":      {Known: true, Err: errors.New("no answer")},
		"is free now":               {Known: true},
		"is held":                   {Known: true, Busy: true},
		"for another 2m":            {Known: true, Busy: true, Remaining: 2 * time.Minute},
		"its rate is used up":       {Known: true, Busy: true, Rate: true, Remaining: time.Minute},
		"the level reports is full": {Known: true, Busy: true, Level: "reports", Remaining: time.Minute},
	} {
		if got := keyState(k); !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("%+v: %q, want %q", k, got, want)
		}
	}
}
