package adaptertest

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/internal/scenario"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/middleware"
)

// Scenarios plays the table of all adapters over mount. Requests need no sockets, which a bubble can't wait for; what the
// wire adds is for the other tests here.
func Scenarios(t *testing.T, mount Mount, fallback middleware.Option) {
	driver := scenario.Driver{Fact: "query.id"}
	driver.Mount = func(t *testing.T, l lock.Locker, opts []guard.Option, work scenario.Work) scenario.Call {
		return requests(mount(t, newGuard(t, l, opts), handler(work)))
	}
	driver.Fallback = func(t *testing.T, l lock.Locker, opts []guard.Option, work scenario.Work) scenario.Call {
		return requests(mount(t, newGuard(t, l, opts), handler(work), fallback))
	}
	scenario.Run(t, driver)
}

// Fell answers for a fallback.
func Fell(w http.ResponseWriter) { _, _ = io.WriteString(w, "fell") }

func newGuard(t *testing.T, l lock.Locker, opts []guard.Option) *guard.Guard {
	t.Helper()
	g, err := guard.New(l, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// handler is work that answers "done", whatever it returns but its own error, and says nothing after it was replaced.
func handler(work scenario.Work) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		switch err := work(r.Context()); {
		case errors.Is(err, scenario.ErrOwn):
			http.Error(w, "failed", http.StatusConflict)
			return
		case err != nil && errors.Is(context.Cause(r.Context()), guard.ErrReplaced):
			return
		}
		_, _ = io.WriteString(w, "done")
	}
}

func requests(h http.Handler) scenario.Call {
	return func(ctx context.Context, id string) scenario.Class {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodPost, "/orders/1?id="+id, nil))
		return classOf(w.Result())
	}
}

// classOf says what a client makes of a response.
func classOf(r *http.Response) scenario.Class {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return scenario.Unknown
	}
	switch {
	case r.StatusCode == http.StatusOK && string(body) == "done":
		return scenario.Done
	case r.StatusCode == http.StatusOK && string(body) == "fell":
		return scenario.Fell
	case r.StatusCode == http.StatusNoContent && r.Header.Get("Latchkey-Outcome") == guard.OutcomeSkipped:
		return scenario.Skipped
	case r.StatusCode == http.StatusConflict && string(body) == "failed\n":
		return scenario.Failed
	case r.StatusCode == http.StatusGatewayTimeout:
		return scenario.Late
	case r.StatusCode == http.StatusServiceUnavailable && len(body) == 0:
		return scenario.Gone
	}
	var p middleware.Problem
	if json.Unmarshal(body, &p) != nil || p.Status != r.StatusCode {
		return scenario.Unknown
	}
	_, typ, _ := strings.Cut(p.Type, "#")
	class, ok := map[answered]scenario.Class{
		{http.StatusBadRequest, "ErrKey"}:                  scenario.BadKey,
		{http.StatusConflict, "ErrBusy"}:                   scenario.Busy,
		{http.StatusConflict, "ErrReplaced"}:               scenario.Replaced,
		{http.StatusServiceUnavailable, "ErrOutage"}:       scenario.Unavailable,
		{http.StatusInternalServerError, "ErrFault"}:       scenario.Broken,
		{http.StatusInternalServerError, "ErrUnsupported"}: scenario.Broken,
		{http.StatusInternalServerError, "ErrLost"}:        scenario.Lost,
	}[answered{r.StatusCode, typ}]
	if !ok {
		return scenario.Unknown
	}
	return class
}

// answered is a status with the type of its problem.
type answered struct {
	status int
	typ    string
}
