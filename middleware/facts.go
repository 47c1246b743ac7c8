package middleware

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"

	"github.com/latchkey-go/latchkey/internal/roots"
	"github.com/latchkey-go/latchkey/keyexpr"
)

// errAmbiguous says that a request could mean one thing to the key and another to the handler.
var errAmbiguous = fmt.Errorf("middleware: ambiguous request: %w", keyexpr.ErrValue)

// roots are those of every request and of the application.
func (c *config) roots() keyexpr.Roots {
	all := roots.HTTP(c.path, c.body)
	for name, fact := range c.facts {
		all[name] = fact.root
	}
	return all
}

// facts is what one request can tell, each prepared when it is asked for.
type facts struct {
	*config
	w      http.ResponseWriter
	r      *http.Request
	query  url.Values // nil until used
	form   url.Values // nil until used
	data   []byte     // the body; nil until read
	unread error      // why there is no data
	begun  []byte     // of a body that was not read to its end, for a handler that runs all the same: a guard in shadow mode
	known  map[string]any
	forms  []*multipart.Form // that functions of the application have read
	upload upload            // what the handler reads, if there is no data
}

func (f *facts) root(name string) (any, error) {
	switch name {
	case "method":
		return f.r.Method, nil
	case "host":
		return hostname(f.r.Host), nil
	case "route":
		return f.route()
	case "path":
		return keyexpr.Lookup(f.pathValue), nil
	case "query":
		return f.queryLookup()
	case "header":
		return keyexpr.Lookup(f.header), nil
	case "cookie":
		return keyexpr.Lookup(f.cookie), nil
	case "form":
		return f.formLookup()
	case "body":
		return f.parse()
	}
	return f.application(name)
}

// application is a fact of WithFacts. The condition and the key share what the function returned.
func (f *facts) application(name string) (any, error) {
	if v, ok := f.known[name]; ok {
		return v, nil
	}
	fact, ok := f.facts[name]
	if !ok {
		return nil, fmt.Errorf("middleware: unknown root %q", name)
	}
	r := f.offer()
	v, err := fact.of(r)
	if form := r.MultipartForm; form != nil && form != f.r.MultipartForm {
		f.forms = append(f.forms, form) // the handler reads its own: a request with this one would have it without its values
	}
	if err = errors.Join(err, f.unread); err != nil {
		return nil, err
	}
	if f.known == nil {
		f.known = make(map[string]any, 1)
	}
	f.known[name] = v
	return v, nil
}

// remove removes the files of the forms that functions of the application have read. Those of the handler's the server removes.
func (f *facts) remove() {
	for _, form := range f.forms {
		_ = form.RemoveAll() // as the server does it
	}
}

// hostname drops what may differ between two spellings of one host, so that they share a key.
func hostname(hostport string) string {
	u := url.URL{Host: hostport}
	return strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
}

func (f *facts) header(name string) (string, bool, error) {
	canonical := http.CanonicalHeaderKey(name)
	if canonical == "Host" {
		return "", false, &routeError{f.r.Pattern, "net/http takes Host out of the headers: write host in place of header." + name}
	}
	return single("header", name, f.r.Header[canonical])
}

func (f *facts) cookie(name string) (string, bool, error) {
	var values []string
	for _, c := range f.r.CookiesNamed(name) {
		values = append(values, c.Value)
	}
	return single("cookie", name, values)
}

// queryLookup refuses a query with a malformed part, which handlers drop or read as they like.
func (f *facts) queryLookup() (any, error) {
	if f.query == nil {
		query, err := url.ParseQuery(f.r.URL.RawQuery)
		if err != nil {
			return nil, fmt.Errorf("%w: malformed query", errAmbiguous)
		}
		f.query = query
	}
	return keyexpr.Lookup(func(name string) (string, bool, error) { return single("query", name, f.query[name]) }), nil
}

func (f *facts) formLookup() (any, error) {
	if f.form == nil {
		form, err := f.formValues()
		if err != nil {
			return nil, err
		}
		f.form = form
	}
	return keyexpr.Lookup(func(name string) (string, bool, error) { return single("form", name, f.form[name]) }), nil
}

// single returns the only value. Of several, the handler may use the first, the last or all, so none can be the key.
func single(where, name string, values []string) (string, bool, error) {
	switch len(values) {
	case 0:
		return "", false, nil
	case 1:
		return values[0], true, nil
	}
	return "", false, fmt.Errorf("%w: %s %q is there %d times", errAmbiguous, where, name, len(values))
}

// pass calls next with the request as it came, except for its context and a body that was read.
func (f *facts) pass(ctx context.Context, w *writer, next http.Handler) {
	r := f.r.WithContext(ctx)
	switch {
	case f.data != nil:
		again := &replay{Closer: f.r.Body}
		again.Reset(f.data)
		r.Body = again
	case r.Body != nil && r.Body != http.NoBody:
		f.upload = upload{r.Body, w}
		r.Body = &f.upload
		if len(f.begun) > 0 {
			r.Body = &resumed{io.MultiReader(bytes.NewReader(f.begun), &f.upload), &f.upload}
		}
	}
	w.begin(ctx)
	defer func() {
		w.end()
		f.r.MultipartForm = r.MultipartForm // the server removes the files of a form from the request that it knows
	}()
	next.ServeHTTP(w.outward(), r)
}
