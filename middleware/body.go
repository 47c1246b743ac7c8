package middleware

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/keyexpr"
)

var (
	// errBody says that the body was cut short, or is not what a key could be taken from.
	errBody      = fmt.Errorf("middleware: unusable body: %w", keyexpr.ErrValue)
	errEmptyBody = errors.New("it is empty")
	errTwins     = errors.New("names that are the same, or differ only in case")
)

// ahead is which bodies are read before waiting for the lock.
type ahead int

const (
	readSmall ahead = iota
	readAll
	readNone
)

// smallBody is the most that is read without being asked for.
const smallBody = 64 << 10

// readsAhead reports whether the body of r is to be read before waiting for the lock. Over HTTP/2, a hang-up shows anyway.
func (c *config) readsAhead(r *http.Request) bool {
	if c.ahead != readSmall {
		return c.ahead == readAll
	}
	n := r.ContentLength
	return c.waits && n > 0 && n <= min(smallBody, c.bodyLimit) && r.ProtoMajor < 2 && r.Header["Expect"] == nil
}

// read reads the body once and keeps it, or why it could not be read, and what was read until then.
func (f *facts) read() error {
	if f.data == nil && f.unread == nil && f.r.Body != nil && f.r.Body != http.NoBody {
		data, err := readBody(f.w, f.r, f.bodyLimit)
		if f.unread = err; err == nil {
			f.data = data
		} else {
			f.begun = data
		}
	}
	return f.unread
}

func (f *facts) parse() (any, error) {
	if err := f.read(); err != nil {
		return nil, err
	}
	v, err := f.decode(f.data)
	if errors.Is(err, io.EOF) {
		err = errEmptyBody
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errBody, err)
	}
	return v, nil
}

// readBody reads at most limit bytes, and one to see that there are more, and stops when the context of r ends. The result is
// not nil without an error, and with one it is what was read.
func readBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	if r.ContentLength > limit {
		return nil, fmt.Errorf("%w: %w", errBody, &http.MaxBytesError{Limit: limit}) // before the client is told to go on (100 Continue)
	}
	i := interruption{w: w, r: r}
	i.begin()
	data, err := readBytes(io.LimitReader(r.Body, max(limit, limit+1)), r.ContentLength)
	i.end()
	if ctx := r.Context(); ctx.Err() != nil {
		return data, fmt.Errorf("middleware: reading the body: %w: %w", ctx.Err(), context.Cause(ctx))
	}
	if err == nil && int64(len(data)) > limit {
		err = &http.MaxBytesError{Limit: limit}
	}
	if err != nil {
		return data, fmt.Errorf("%w: %w", errBody, err)
	}
	return data, nil
}

// readBytes is io.ReadAll with room for what was announced, if that is not much.
func readBytes(body io.Reader, announced int64) ([]byte, error) {
	room := announced + 1 // so that the end shows at once
	if announced < 0 || announced > smallBody {
		room = 512
	}
	data := make([]byte, 0, room)
	for {
		n, err := body.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		if err == io.EOF {
			return data, nil
		}
		if err != nil {
			return data, err
		}
		if len(data) == cap(data) {
			data = slices.Grow(data, 1)
		}
	}
}

// interruption makes reads of the body fail when the context of r ends.
type interruption struct {
	w    http.ResponseWriter
	r    *http.Request
	stop func() bool
	done sync.WaitGroup
}

func (i *interruption) begin() {
	i.done.Add(1)
	i.stop = context.AfterFunc(i.r.Context(), func() {
		defer i.done.Done()
		_ = http.NewResponseController(i.w).SetReadDeadline(time.Unix(1, 0)) // where that can't be done, reads end by themselves
	})
}

// end returns after any failing was done: the connection may be another request's soon.
func (i *interruption) end() {
	if i.stop() {
		return
	}
	i.done.Wait()
	if i.r.ProtoMajor == 1 {
		i.w.Header().Set("Connection", "close") // nothing more can be read from it
	}
}

// replay is a body that starts again, and closes the original.
type replay struct {
	bytes.Reader
	io.Closer
}

// resumed is a body that starts again with what was read of it, and goes on from the client.
type resumed struct {
	io.Reader
	io.Closer
}

// decode reads data, which must be one JSON value and nothing else, as a T.
func decode[T any](data []byte) (any, error) {
	var v T
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("more than one JSON value")
	}
	if repeats(data) { // which a handler that reads it as another type may see in another way
		return nil, errTwins
	}
	return v, nil
}
