package middleware

import (
	"encoding/json"
	"math"
	"net/http"
	"strconv"
	"time"
)

// docs begins the type of a problem: what the documentation says about the guard's error is true of the problem.
const docs = "https://pkg.go.dev/github.com/latchkey-go/latchkey/guard#"

// Problem is an error response: problem details as in RFC 9457. Its JSON form is the body that is sent, and never
// holds the key.
type Problem struct {
	// Type tells problems apart: a URI that ends in #ErrKey, #ErrBusy, #ErrOutage or #ErrLost. It is about:blank where
	// Status says it all.
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail,omitempty"`
	// Guard is the name of the guard.
	Guard string `json:"guard"`
	// RetryAfter is sent as the header of that name, in whole seconds. It is at least a second where trying again makes
	// sense, and otherwise 0.
	RetryAfter time.Duration `json:"-"`
	// Err is what happened, for logs: its text may hold words of the lock service.
	Err error `json:"-"`
}

// plain is a problem of which status says it all.
func plain(status int, detail string) Problem {
	return Problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: detail}
}

func keyProblem() Problem {
	return Problem{Type: docs + "ErrKey", Title: "No lock key in the request", Status: http.StatusBadRequest,
		Detail: "A value that the lock needs is missing, empty, there twice or of the wrong kind."}
}

// prepare sets the headers of p, and drops those that a handler meant for a body which is not sent.
func (p *Problem) prepare(h http.Header) {
	for _, name := range []string{"Content-Length", "Content-Encoding", "Etag", "Last-Modified", "Cache-Control"} {
		h.Del(name)
	}
	h.Set("Content-Type", "application/problem+json")
	if p.RetryAfter > 0 {
		h.Set("Retry-After", strconv.FormatFloat(math.Ceil(p.RetryAfter.Seconds()), 'f', 0, 64))
	}
}

// respond is the default of option Respond.
func respond(w http.ResponseWriter, r *http.Request, p Problem) {
	body, err := json.Marshal(p)
	if err != nil { // unreachable: strings and a number
		body = nil
	}
	w.WriteHeader(p.Status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(append(body, '\n')) // fails if the client has gone
	}
}
