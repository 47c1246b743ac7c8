// Package view says how the handlers behind a router read a request, where that is not
// net/http's way. A key must be made of the values that they see.
package view

import "net/http"

// A Reader is how handlers read a request. Its zero value is net/http's.
type Reader struct {
	JSON   func(r *http.Request) bool         // reports whether they take the body for JSON
	Body   func(r *http.Request) []byte       // is a body that was read and kept in front of the guard; nil for none
	Cookie func(value string) (string, error) // is what they see of a cookie's value
	Bind   bool                               // they may bind a body of any type in place of a form, but for GET
}
