package middleware

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"mime"
	"net/http"
	"strings"
	"sync"

	"github.com/latchkey-go/latchkey/keyexpr"
)

// ahead is which bodies are read before waiting for the lock.
type ahead int

const (
	readSmall ahead = iota
	readAll
	readNone
)

// smallBody is the most that is read ahead without an option.
const smallBody = 64 << 10

// readAhead reads the body before waiting for the lock, if the guard is on and reads ahead. Over HTTP/2, a hang-up
// shows anyway.
func (x *exchange) readAhead() error {
	f := &x.facts
	n, most := f.r.ContentLength, min(smallBody, f.bodyLimit)
	switch {
	case f.ahead == readAll && f.plan.runner.On():
		_, err := f.body()
		return err
	case f.ahead == readSmall && f.plan.waits && n > 0 && n <= most && f.r.ProtoMajor < 2 && f.r.Header["Expect"] == nil && f.plan.runner.On():
		_ = f.read(most) // which may not be all: the length is that of a compressed body where somebody in front decompresses it
	}
	return nil
}

// body returns the body, which the handler reads again.
func (f *facts) body() ([]byte, error) {
	if f.view.Body != nil {
		if kept := f.view.Body(f.r); kept != nil {
			return kept, nil
		}
	}
	if f.r.ContentLength <= f.bodyLimit { // or it is refused before the client gets a 100 Continue
		if err := f.read(f.bodyLimit); err != nil {
			return nil, err
		}
	}
	switch data := f.data.Bytes(); {
	case !f.whole:
		return nil, fmt.Errorf("%w: %w", keyexpr.ErrValue, &http.MaxBytesError{Limit: f.bodyLimit})
	case len(data) == 0 && f.r.ContentLength > 0:
		return nil, &routeError{f.r.Pattern, "somebody in front of the guard has read the body: place the guard further out, or put the body back"}
	default:
		return data, nil
	}
}

// read reads the body to its end, or until there are more than most bytes. It keeps the bytes for the handler.
func (f *facts) read(most int64) error {
	if f.whole || f.unread != nil {
		return f.unread
	}
	if f.r.Body == nil {
		f.whole = true
		return nil
	}
	end := f.endWith(f.r.Context())
	_, err := io.CopyN(&f.data, f.r.Body, min(most, math.MaxInt64-1)+1-int64(f.data.Len()))
	end()
	switch ctx := f.r.Context(); {
	case ctx.Err() != nil:
		f.unread = fmt.Errorf("middleware: reading the body: %w: %w", ctx.Err(), context.Cause(ctx))
	case err == io.EOF: //nolint:errorlint // a Read returns it itself: what wraps it is a body that broke off
		f.whole = true
	case err != nil:
		f.unread = unusable(err)
	}
	return f.unread
}

// endWith makes reads of the body fail when ctx ends. The returned function ends that, and returns after any failing was done: the
// connection may be another request's soon.
func (f *facts) endWith(ctx context.Context) (end func()) {
	var done sync.WaitGroup
	done.Add(1)
	stop := context.AfterFunc(ctx, func() {
		defer done.Done()
		_ = http.NewResponseController(f.w).SetReadDeadline(expired) // where that can't be done, reads end by themselves
	})
	return func() {
		if stop() {
			return
		}
		done.Wait()
		if f.r.ProtoMajor == 1 {
			f.w.Header().Set("Connection", "close") // nothing more can be read from it
		}
	}
}

// again is the body for the handler: what was read of it, and the rest from the client.
func (f *facts) again(w *writer) io.ReadCloser {
	rest := io.MultiReader() // nothing
	if !f.whole {
		rest = &upload{f.r.Body, w}
	}
	return struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(f.data.Bytes()), rest), f.r.Body}
}

// parse returns the value of the JSON body.
func (f *facts) parse() (any, error) {
	if f.r.ContentLength != 0 && !f.json(f.r) {
		return nil, &bodyError{http.StatusUnsupportedMediaType, "body",
			"The lock needs a body of type application/json. (middleware.BodyIsJSON is for handlers that decode whatever the type says.)"}
	}
	data, err := f.body()
	if err != nil {
		return nil, err
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, &bodyError{http.StatusBadRequest, "body", "The body is empty."}
	}
	v, err := f.decode(data, f.plan.names)
	if err != nil && !errors.Is(err, keyexpr.ErrValue) {
		err = unusable(err)
	}
	return v, err
}

// isJSON reports whether r says that its body is JSON, or says nothing. A type that not all readers understand alike is none.
func isJSON(r *http.Request) bool {
	kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	kind = strings.TrimSpace(kind)
	return len(r.Header["Content-Type"]) <= 1 && (kind == "" || kind == "application/json" || strings.HasSuffix(kind, "+json"))
}

// formType is the type of r's body if handlers see a form in it, as [http.Request.ParseMultipartForm] does, with the boundary of
// its parts.
func formType(r *http.Request) (kind, boundary string) {
	kind, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch {
	case err != nil:
	case kind == "multipart/form-data":
		return kind, params["boundary"]
	case kind == "application/x-www-form-urlencoded" && hasForm(r.Method):
		return kind, ""
	}
	return "", ""
}

// hasForm reports whether handlers see a URL-encoded form in a request of this method.
func hasForm(method string) bool {
	return method == http.MethodPost || method == http.MethodPut || method == http.MethodPatch
}
