package middleware

import (
	"bytes"
	"errors"
	"fmt"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"

	"github.com/latchkey-go/latchkey/internal/roots"
	"github.com/latchkey-go/latchkey/keyexpr"
)

// errAmbiguous says that a request could mean one thing to the key and another to the handler.
var errAmbiguous = fmt.Errorf("middleware: ambiguous request: %w", keyexpr.ErrValue)

// errForm says that the body is no form, though its type says so.
var errForm = &bodyError{http.StatusBadRequest, "form", "The body could not be read as a form."}

// roots are those of every request and of the application.
func (c *config) roots() keyexpr.Roots {
	all := roots.HTTP(c.path, c.bodyRoot)
	for name, fact := range c.facts {
		all[name] = fact.root
	}
	return all
}

// facts are those of one request, each prepared at its first use.
type facts struct {
	*config
	plan   *plan
	w      http.ResponseWriter
	r      *http.Request
	query  url.Values   // nil until used
	form   url.Values   // nil until used
	data   bytes.Buffer // of the body, as far as it was read
	whole  bool         // data is all of it
	unread error        // why no more can be read
	known  map[string]any
	forms  []*multipart.Form // that functions of the application have read
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
		value, err := c.Value, error(nil)
		if f.view.Cookie != nil {
			value, err = f.view.Cookie(value)
		}
		if err != nil {
			return "", false, fmt.Errorf("%w: malformed cookie", errAmbiguous)
		}
		values = append(values, value)
	}
	return single("cookie", name, values)
}

// queryLookup refuses a query with a malformed part, which handlers drop or read as they like, and one beside a form, whose values
// FormValue prefers to those of the query.
func (f *facts) queryLookup() (any, error) {
	if kind, _ := formType(f.r); !f.queryOnly && f.r.ContentLength != 0 && (kind != "" || f.binds()) {
		return nil, &bodyError{http.StatusUnsupportedMediaType, "query",
			"The lock needs the query, for which a handler may take the values of the body. (middleware.QueryOnly is for handlers that read the URL alone.)"}
	}
	if f.query == nil {
		query, err := url.ParseQuery(f.r.URL.RawQuery)
		if err != nil {
			return nil, fmt.Errorf("%w: malformed query", errAmbiguous)
		}
		f.query = query
	}
	return keyexpr.Lookup(func(name string) (string, bool, error) { return single("query", name, f.query[name]) }), nil
}

// formLookup refuses a name that the query has, too: FormValue finds it there where the form has none.
func (f *facts) formLookup() (any, error) {
	if f.form == nil {
		form, err := f.formValues()
		if err != nil {
			return nil, err
		}
		f.form = form
	}
	query := f.r.URL.Query()
	return keyexpr.Lookup(func(name string) (string, bool, error) {
		if query.Has(name) {
			return "", false, fmt.Errorf("%w: form %q is in the query, too", errAmbiguous, name)
		}
		return single("form", name, f.form[name])
	}), nil
}

// formValues is the form in the body as a handler sees it in PostForm: a form in the query is not in it.
func (f *facts) formValues() (url.Values, error) {
	kind, boundary := formType(f.r)
	parsed := f.r.MultipartForm
	switch {
	case parsed != nil: // a handler further out has read the body
		return parsed.Value, nil
	case f.r.PostForm != nil && boundary == "":
		return f.r.PostForm, nil
	case f.r.ContentLength == 0 || kind == "" && !hasForm(f.r.Method) && !f.binds():
		return nil, nil // handlers see no form in these
	case kind == "":
		return nil, &bodyError{http.StatusUnsupportedMediaType, "form",
			"The lock needs a body of type application/x-www-form-urlencoded or multipart/form-data."}
	}
	data, err := f.body()
	if err != nil {
		return nil, err
	}
	if boundary == "" {
		form, err := url.ParseQuery(string(data))
		if err != nil {
			return nil, errForm
		}
		return form, nil
	}
	parts, err := multipart.NewReader(bytes.NewReader(data), boundary).ReadForm(int64(len(data)))
	if err != nil {
		return nil, errForm
	}
	return parts.Value, parts.RemoveAll() // of nothing: all is in memory
}

// binds reports whether the handler may bind a body of any type in place of a form.
func (f *facts) binds() bool { return f.view.Bind && f.r.Method != http.MethodGet }

// single returns the only value. The handler may use the first of several, the last or all, so none can be the key.
func single(where, name string, values []string) (string, bool, error) {
	switch len(values) {
	case 0:
		return "", false, nil
	case 1:
		return values[0], true, nil
	}
	return "", false, fmt.Errorf("%w: %s %q is there %d times", errAmbiguous, where, name, len(values))
}
