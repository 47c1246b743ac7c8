package neighbours

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// work is what a handler does. Each program does it in the way of its framework.
type work struct {
	name   string
	method string // POST if empty
	do     func(*exchange) error

	returns bool   // an error that it returns is its whole answer
	outcome string // of a guard that let it through; ok if empty
	events  int    // lines that the client acknowledges, one by one
	midway  bool   // something has left before the lock is lost, unless somebody holds it back
	whole   bool   // and that may be all of it
	typed   bool   // answers by exchange.json only
	hangs   bool   // until the client gives up
	late    bool   // until the program's timeout is over
	refused bool   // played with guards that refuse, whose handlers do not run

	header  map[string]string // of the request
	body    []byte            // of a POST; an order if nil
	chunked bool              // its length is not announced
}

// exchange is a request and its response, as a handler has them.
type exchange struct {
	w    http.ResponseWriter
	r    *http.Request
	json func(status int, v any) error // as the framework does it
	*call
}

// call is one request's play, between the handler and the test.
type call struct {
	begun    chan struct{} // closed when the handler runs
	got      chan struct{} // an event came to the client; closed when the client has gone
	answered chan struct{} // closed when the client has its answer; nil where that comes from the handler
	losing   func()        // takes the lock away; or nil
	runs     int           // of the handler
}

// lose is where the lock is lost, if it is.
func (c *call) lose() {
	if c.losing != nil {
		c.losing()
	}
}

// failure is an error with a status.
type failure struct {
	status int
	text   string
}

func (f *failure) Error() string { return f.text }

var errPlain = errors.New("the database is on fire")

// statusOf is what a framework makes of an error.
func statusOf(err error) (status int, text string) {
	if f, ok := errors.AsType[*failure](err); ok {
		return f.status, f.text
	}
	return http.StatusInternalServerError, http.StatusText(http.StatusInternalServerError)
}

const large = 40_000

func (x *exchange) write(n int) error {
	_, err := x.w.Write([]byte(strings.Repeat("all work and no play ", n/21+1)[:n]))
	return err
}

// flush reports whether the response may have got any further.
func (x *exchange) flush() bool { return http.NewResponseController(x.w).Flush() == nil }

// event sends a line, and waits until the client has it. A nil channel is that of a program that keeps all until the end.
func (x *exchange) event(i int) {
	fmt.Fprintf(x.w, "data: event %d\n", i)
	if x.flush() && x.got != nil {
		select {
		case <-x.got:
		case <-x.r.Context().Done():
		}
	}
}

func (x *exchange) events() error {
	x.event(0)
	x.event(1)
	x.lose()
	x.event(2)
	return nil
}

// works are all that handlers do in all programs.
var works = []work{
	{name: "small", typed: true, refused: true, do: func(x *exchange) error {
		x.lose()
		return x.json(http.StatusOK, map[string]bool{"settled": true})
	}},
	{name: "created", typed: true, do: func(x *exchange) error {
		defer x.lose()
		x.w.Header().Set("Location", "/orders/8")
		x.w.Header().Set("Etag", `"8"`)
		return x.json(http.StatusCreated, map[string]int{"order": 8})
	}},
	{name: "early hints", do: func(x *exchange) error {
		x.w.Header().Set("Link", "</style.css>; rel=preload")
		x.w.WriteHeader(http.StatusEarlyHints)
		x.lose()
		x.w.Header().Set("Content-Type", "text/plain")
		return x.write(100)
	}},
	{name: "HEAD", method: "HEAD", refused: true, do: func(x *exchange) error {
		x.w.Header().Set("Content-Type", "text/plain")
		x.lose()
		return x.write(100)
	}},
	{name: "large", midway: true, do: func(x *exchange) error {
		x.w.Header().Set("Content-Type", "text/plain")
		if err := x.write(large / 2); err != nil {
			return err
		}
		x.lose()
		_ = x.write(large / 2)
		return nil
	}},
	{name: "large of a declared length", midway: true, whole: true, do: func(x *exchange) error {
		x.w.Header().Set("Content-Type", "text/plain")
		x.w.Header().Set("Content-Length", fmt.Sprint(large))
		if err := x.write(large); err != nil {
			return err
		}
		x.lose()
		return nil
	}},
	{name: "small of a declared length", do: func(x *exchange) error {
		x.w.Header().Set("Content-Type", "text/plain")
		x.w.Header().Set("Content-Length", "100")
		_ = x.write(60)
		x.lose()
		_ = x.write(40)
		return nil
	}},
	{name: "short of its length", do: func(x *exchange) error {
		x.w.Header().Set("Content-Type", "text/plain")
		x.w.Header().Set("Content-Length", "100")
		err := x.write(60)
		x.lose()
		return err
	}},
	{name: "small of no type", do: func(x *exchange) error { defer x.lose(); return x.write(300) }},
	{name: "large of no type", midway: true, do: func(x *exchange) error { defer x.lose(); return x.write(large) }},
	{name: "no body", refused: true, do: func(x *exchange) error { x.lose(); x.w.WriteHeader(http.StatusNoContent); return nil }},
	{name: "nothing", do: func(x *exchange) error { x.lose(); x.w.Header().Set("X-Settled", "7"); return nil }},
	{name: "redirect", do: func(x *exchange) error {
		http.Redirect(x.w, x.r, "/orders", http.StatusSeeOther)
		x.lose()
		return nil
	}},
	{name: "not modified", method: "GET", do: func(x *exchange) error {
		x.w.Header().Set("Etag", `"7"`)
		x.w.WriteHeader(http.StatusNotModified)
		x.lose()
		return nil
	}},
	{name: "reads", typed: true, refused: true, do: func(x *exchange) error {
		var order struct{ ID, Note string }
		if err := json.NewDecoder(x.r.Body).Decode(&order); err != nil {
			return err
		}
		x.lose()
		return x.json(http.StatusOK, map[string]string{"id": order.ID, "note": order.Note})
	}},
	{name: "path value", typed: true, do: func(x *exchange) error {
		x.lose()
		return x.json(http.StatusOK, map[string]string{"id": x.r.PathValue("id"), "query": x.r.URL.RawQuery})
	}},

	{name: "reads too much", outcome: "error", do: func(x *exchange) error {
		_, err := io.ReadAll(http.MaxBytesReader(x.w, x.r.Body, 10))
		x.lose()
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			return &failure{http.StatusRequestEntityTooLarge, "too much"}
		}
		return err
	}},

	{name: "refuses", outcome: "error", returns: true, do: func(x *exchange) error {
		x.lose()
		return &failure{http.StatusUnprocessableEntity, "no such order"}
	}},
	{name: "fails", outcome: "error", returns: true, do: func(x *exchange) error {
		x.lose()
		return &failure{http.StatusServiceUnavailable, "no stock"}
	}},
	{name: "fails by a plain error", outcome: "error", returns: true, do: func(x *exchange) error { x.lose(); return errPlain }},
	{name: "fails to a HEAD", method: "HEAD", outcome: "error", returns: true, do: func(x *exchange) error { x.lose(); return errPlain }},
	{name: "fails with a large body", outcome: "error", do: func(x *exchange) error {
		x.w.Header().Set("Content-Type", "application/json")
		x.w.WriteHeader(http.StatusBadRequest)
		x.lose()
		return x.write(8000)
	}},
	{name: "fails with a JSON of its own", outcome: "error", typed: true, do: func(x *exchange) error {
		x.lose()
		return x.json(http.StatusConflict, map[string]string{"error": "settled already"})
	}},
	{name: "fails without a body", outcome: "error", do: func(x *exchange) error {
		x.lose()
		x.w.WriteHeader(http.StatusConflict)
		return nil
	}},
	{name: "fails after a part", outcome: "error", do: func(x *exchange) error {
		x.w.Header().Set("Content-Type", "text/plain")
		_ = x.write(50)
		x.lose()
		return errPlain
	}},

	{name: "panics", outcome: "panic", returns: true, do: func(x *exchange) error { x.lose(); panic("on purpose") }},
	{name: "aborts", outcome: "panic", returns: true, do: func(x *exchange) error { x.lose(); panic(http.ErrAbortHandler) }},
	{name: "panics after a part", outcome: "panic", do: func(x *exchange) error {
		_ = x.write(50)
		x.lose()
		panic("on purpose")
	}},
	{name: "panics after a flush", outcome: "panic", midway: true, do: func(x *exchange) error {
		_ = x.write(50)
		x.flush()
		x.lose()
		panic("on purpose")
	}},

	{name: "events", method: "GET", events: 3, refused: true, midway: true, do: func(x *exchange) error {
		x.w.Header().Set("Content-Type", "text/event-stream")
		x.flush()
		return x.events()
	}},
	{name: "lines with trailers", events: 3, midway: true, do: func(x *exchange) error {
		h := x.w.Header()
		h.Set("Content-Type", "text/plain")
		h.Set("Trailer", "Sum")
		err := x.events()
		h.Set("Sum", "3")
		h.Set(http.TrailerPrefix+"More", "none")
		return err
	}},
	{name: "a trailer", do: func(x *exchange) error {
		h := x.w.Header()
		h.Set("Content-Type", "text/plain")
		h.Set("Trailer", "Sum")
		err := x.write(100)
		x.lose()
		h.Set("Sum", "3")
		return err
	}},
	{name: "hangs", hangs: true, outcome: "error", do: hang},
	{name: "is late", late: true, outcome: "error", do: hang},
}

// hang waits for the end of its context, which fails it. Over HTTP/1, a server notices that only once the body was read.
func hang(x *exchange) error {
	_, _ = io.Copy(io.Discard, x.r.Body)
	x.lose()
	<-x.r.Context().Done()
	if x.answered != nil {
		<-x.answered
	}
	return &failure{http.StatusServiceUnavailable, "gave up"}
}
