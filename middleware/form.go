package middleware

import (
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
)

// errForm says that the body is no form, and is joined to errBody.
var errForm = errors.New("no URL-encoded form")

// formValues is the form in the body as a handler sees it in PostForm: a form in the query is not in it.
func (f *facts) formValues() (url.Values, error) {
	if f.r.PostForm != nil {
		return f.r.PostForm, nil // a handler further out has read the body
	}
	switch f.r.Method {
	case http.MethodPost, http.MethodPut, http.MethodPatch:
	default:
		return nil, nil // handlers see no form in other requests
	}
	if kind, _, err := mime.ParseMediaType(f.r.Header.Get("Content-Type")); err != nil || kind != "application/x-www-form-urlencoded" {
		return nil, fmt.Errorf("%w: %w", errBody, errForm)
	}
	if err := f.read(); err != nil {
		return nil, err
	}
	form, err := url.ParseQuery(string(f.data))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errBody, errForm)
	}
	return form, nil
}
