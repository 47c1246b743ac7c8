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
	"strings"
	"time"

	"github.com/latchkey-go/latchkey/keyexpr"
)

var (
	// errBody says that the body was cut short, or is not what a key could be taken from.
	errBody      = fmt.Errorf("middleware: unusable body: %w", keyexpr.ErrValue)
	errEmptyBody = errors.New("it is empty")
	errTwins     = errors.New("names that differ only in case")
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

// read reads the body once and keeps it, or why it could not be read: what is left of it then is no body.
func (f *facts) read() error {
	if f.data == nil && f.unread == nil && f.r.Body != nil && f.r.Body != http.NoBody {
		f.data, f.unread = readBody(f.w, f.r, f.bodyLimit)
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

// readBody reads at most limit bytes, and stops when the context of r ends. The result is not nil without an error.
func readBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	if r.ContentLength > limit {
		return nil, fmt.Errorf("%w: %w", errBody, &http.MaxBytesError{Limit: limit}) // before the client is told to go on (100 Continue)
	}
	joined := interrupt(w, r)
	data, err := readBytes(http.MaxBytesReader(w, r.Body, limit), r.ContentLength)
	joined()
	if ctx := r.Context(); ctx.Err() != nil {
		return nil, fmt.Errorf("middleware: reading the body: %w: %w", ctx.Err(), context.Cause(ctx))
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errBody, err)
	}
	return data, nil
}

// readBytes is io.ReadAll with room for what was announced, if that is not much.
func readBytes(body io.Reader, announced int64) ([]byte, error) {
	data := make([]byte, 0, max(min(announced, smallBody)+1, 512))
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

// interrupt makes reads of the body fail when the context of r ends. The returned function undoes that, and returns
// after any failing was done: the connection may be another request's soon.
func interrupt(w http.ResponseWriter, r *http.Request) (joined func()) {
	done := make(chan struct{})
	stop := context.AfterFunc(r.Context(), func() {
		defer close(done)
		_ = http.NewResponseController(w).SetReadDeadline(time.Unix(1, 0)) // where that can't be done, reads end by themselves
	})
	return func() {
		if stop() {
			return
		}
		<-done
		if r.ProtoMajor == 1 {
			w.Header().Set("Connection", "close") // nothing more can be read from it
		}
	}
}

// replay is a body that starts again, and closes the original.
func replay(data []byte, original io.Closer) io.ReadCloser {
	return struct {
		*bytes.Reader
		io.Closer
	}{bytes.NewReader(data), original}
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
	if a, ok := any(&v).(*any); ok {
		return tidy(*a)
	}
	return v, nil
}

// tidy makes numbers of json.Numbers, and refuses objects with names that encoding/json would store in one field of a
// struct: the key must not be taken from the one and the handler work on the other.
func tidy(v any) (_ any, err error) {
	switch v := v.(type) {
	case json.Number:
		return number(v)
	case []any:
		for i, e := range v {
			if v[i], err = tidy(e); err != nil {
				return nil, err
			}
		}
	case map[string]any:
		seen := make(map[string]bool, len(v))
		for name, member := range v {
			folded := strings.ToLower(strings.ToUpper(name))
			if seen[folded] {
				return nil, errTwins
			}
			seen[folded] = true
			if v[name], err = tidy(member); err != nil {
				return nil, err
			}
		}
	}
	return v, nil
}

// number makes 7 an int64 and 7.0 a float64, which no key takes, because a handler may read both as the same. Digits
// beyond int64 stay text.
func number(n json.Number) (any, error) {
	if i, err := n.Int64(); err == nil {
		return i, nil
	}
	if strings.ContainsAny(n.String(), ".eE") {
		return n.Float64()
	}
	return n, nil
}
