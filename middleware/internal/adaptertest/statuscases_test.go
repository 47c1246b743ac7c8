package adaptertest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"strings"
	"time"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/middleware"
)

// secret is in all keys and all words of the lock service, and may be in no response.
const secret = "7f3a"

const pathKey = "order:#{path.id}"

var statusCases = []statusCase{
	{name: "done", locker: Free, status: 200, ran: true, body: "done"},
	{name: "key from a header", locker: Free, guard: keyed(tenantKey), request: header("Tenant", secret), status: 200, ran: true, body: "done"},
	{name: "key from a query", locker: Free, guard: keyed(queryKey), request: query("id=1"), status: 200, ran: true, body: "done"},
	{name: "key from a body", locker: Free, guard: keyed(bodyKey), status: 200, ran: true, body: "done"},
	{name: "condition is false", locker: Down, guard: keyed(guard.When(`method != "POST"`)), status: 200, ran: true, body: "done"},
	{name: "method of the guard", locker: Down, guard: keyed(guard.Methods("PUT", "POST")), status: 503, typ: "ErrOutage", retry: "1"},
	{name: "other method", locker: Down, guard: keyed(guard.Methods("PUT", "DELETE")), status: 200, ran: true, body: "done"},

	{name: "no header", locker: Down, guard: keyed(tenantKey), status: 400, typ: "ErrKey", fact: "header.Tenant", detail: "The lock needs header.Tenant, which is missing"},
	{name: "empty header", locker: Down, guard: keyed(tenantKey), request: header("Tenant", ""), status: 400, typ: "ErrKey", fact: "header.Tenant"},
	{name: "two headers", locker: Down, guard: keyed(tenantKey), request: header("Tenant", "a", "b"), status: 400, typ: "ErrKey", fact: "header.Tenant"},
	{name: "two headers, default", locker: Down, guard: keyed(guard.Key(`order:#{header.Tenant ?? "none"}`)), request: header("Tenant", "a", "b"), status: 400, typ: "ErrKey", fact: "header.Tenant ?? \"none\""},
	{name: "no query", locker: Down, guard: keyed(queryKey), request: query(""), status: 400, typ: "ErrKey", fact: "query.id"},
	{name: "two in the query", locker: Down, guard: keyed(queryKey), request: query("id=1&id=1"), status: 400, typ: "ErrKey", fact: "query.id"},
	{name: "two in the query, condition", locker: Down, guard: keyed(guard.When(`query.mode == "write"`)), request: query("mode=write&mode=write"), status: 400, typ: "ErrKey", fact: "query.mode"},
	{name: "two of another name in the query", locker: Free, guard: keyed(queryKey), request: query("id=1&x=1&x=2"), status: 200, ran: true, body: "done"},
	{name: "malformed query", locker: Down, guard: keyed(queryKey), request: query("id=1&x=%zz"), status: 400, typ: "ErrKey", fact: "query.id"},
	{name: "malformed query, default", locker: Down, guard: keyed(guard.Key(`order:#{query.id ?? "none"}`)), request: query("id=1;x=2"), status: 400, typ: "ErrKey", fact: "query.id ?? \"none\""},
	{name: "no member", locker: Down, guard: keyed(bodyKey), request: body(`{"idd":1}`), status: 400, typ: "ErrKey", fact: "body.id"},
	{name: "null", locker: Down, guard: keyed(bodyKey), request: body(`null`), status: 400, typ: "ErrKey", fact: "body.id"},
	{name: "fraction", locker: Down, guard: keyed(bodyKey), request: body(`{"id":7.5}`), status: 400, typ: "ErrKey", fact: "body.id"},
	{name: "names that differ in case", locker: Down, guard: keyed(bodyKey), request: body(`{"id":"1","ID":"2"}`), status: 400, fact: "body", detail: "two names that differ only in case"},
	{name: "a name twice", locker: Down, guard: keyed(guard.When("body.id != nil")), request: body(`{"id":"1","id":null}`), status: 400, fact: "body", detail: "one name twice"},
	{name: "a name twice, body of a type", locker: Down, guard: keyed(guard.Key("order:#{body.ID}")), options: options(middleware.Body[struct{ ID string }]()), request: body(`{"ID":"1","l":{"a":1e999,"a":{}}}`), status: 400, fact: "body", detail: "one name twice"},
	{name: "names that differ in case, body of a type", locker: Down, guard: keyed(guard.Key("order:#{body.ID}")), options: options(middleware.Body[struct{ ID string }]()), request: body(`{"ID":"1","id":"1"}`), status: 400, fact: "body", detail: "differ only in case"},
	{name: "names that differ in case, deep", locker: Down, guard: keyed(bodyKey), request: body(`{"id":"1","l":[{"s":1,"ſ":2}]}`), status: 400, fact: "body"},
	{name: "condition on a number", locker: Down, guard: keyed(guard.When("body.l[0] > 2")), request: body(`{"l":[3]}`), status: 503, typ: "ErrOutage", retry: "1"},
	{name: "condition on a fraction", locker: Down, guard: keyed(guard.When("body.l[0] > 2")), request: body(`{"l":[2.5]}`), status: 503, typ: "ErrOutage", retry: "1"},
	{name: "condition is false for the number", locker: Down, guard: keyed(guard.When("body.l[0] > 2")), request: body(`{"l":[2]}`), status: 200, ran: true, body: "done"},
	{name: "malformed body", locker: Down, guard: keyed(bodyKey), request: body(`{"id":`), status: 400, fact: "body", detail: "one JSON value"},
	{name: "more than one value", locker: Down, guard: keyed(bodyKey), request: body(`{"id":"1"} x`), status: 400, fact: "body"},
	{name: "empty body", locker: Down, guard: keyed(bodyKey), request: body(``), status: 400, fact: "body", detail: "The body is empty."},
	{name: "no body", locker: Down, guard: keyed(bodyKey), request: func(r *http.Request) { r.Body, r.ContentLength = nil, 0 }, status: 400, fact: "body"},
	{name: "malformed body, default", locker: Down, guard: keyed(guard.Key(`order:#{body.id ?? "none"}`)), request: body(`{`), status: 400, fact: "body"},
	{name: "malformed body that no key uses", locker: Free, request: body(`{`), status: 200, ran: true, body: "done"},
	{name: "body of the wrong type", locker: Down, guard: keyed(guard.Key("order:#{body.ID}")), options: options(middleware.Body[struct{ ID int }]()), status: 400, fact: "body.ID", detail: "member ID is of the wrong type"},
	{name: "body at the limit", locker: Free, guard: keyed(bodyKey), options: options(middleware.BodyLimit(13)), status: 200, ran: true, body: "done"},
	{name: "body over the limit", locker: Down, guard: keyed(bodyKey), options: options(middleware.BodyLimit(12)), status: 413},
	{name: "body at the default limit", locker: Free, guard: keyed(bodyKey), request: mebibyte(0), status: 200, ran: true, body: "done"},
	{name: "body over the default limit", locker: Down, guard: keyed(bodyKey), request: mebibyte(1), status: 413},
	{name: "chunked body over the limit", locker: Down, guard: keyed(bodyKey), options: options(middleware.BodyLimit(12)), chunked: true, status: 413},
	{name: "body over the limit that no key uses", locker: Free, options: options(middleware.BodyLimit(12)), status: 200, ran: true, body: "done"},
	{name: "body read ahead over the limit", locker: Down, options: options(middleware.BodyLimit(12), middleware.ReadAhead()), status: 413},

	{name: "body of another type than an object", locker: Down, guard: keyed(bodyKey), request: body(`[7]`), status: 400, typ: "ErrKey", fact: "body.id"},
	{name: "body of another type, typed", locker: Down, guard: keyed(guard.Key("order:#{body.ID}")), options: options(middleware.Body[struct{ ID int }]()), request: body(`[7]`), status: 400, fact: "body", detail: "a JSON value of the wrong type"},

	{name: "key from a cookie", locker: Free, guard: keyed(cookieKey), request: header("Cookie", `a=1; id="2"`), status: 200, ran: true, body: "done"},
	{name: "no cookie", locker: Down, guard: keyed(cookieKey), status: 400, typ: "ErrKey", fact: "cookie.id"},
	{name: "two cookies", locker: Down, guard: keyed(cookieKey), request: header("Cookie", "id=1; id=2"), status: 400, typ: "ErrKey", fact: "cookie.id"},
	{name: "key from a form", locker: Free, guard: keyed(formKey), request: form("id=1&page=2"), handler: echoForm, status: 200, ran: true, body: "1 2"},
	{name: "key from a form of a PUT", locker: Free, guard: keyed(formKey), request: formOf("PUT"), handler: echoForm, status: 200, ran: true, body: "1 2"},
	{name: "key from a form of a PATCH", locker: Free, guard: keyed(formKey), request: formOf("PATCH"), handler: echoForm, status: 200, ran: true, body: "1 2"},
	{name: "key from a form that was parsed already", locker: Free, guard: keyed(formKey), request: form("id=1&page=2", "Test-Form", "parse"), handler: echoForm, status: 200, ran: true, body: "1 2"},
	{name: "form in the query", locker: Down, guard: keyed(formKey), request: func(r *http.Request) { query("id=1")(r); form("page=2")(r) }, status: 400, typ: "ErrKey", fact: "form.id"},
	{name: "two in the form", locker: Down, guard: keyed(formKey), request: form("id=1&id=2"), status: 400, typ: "ErrKey", fact: "form.id"},
	{name: "malformed form", locker: Down, guard: keyed(formKey), request: form("id=%zz"), status: 400, fact: "form"},
	{name: "form of another type", locker: Down, guard: keyed(formKey), status: 415, fact: "form"},
	{name: "form that is JSON", locker: Down, guard: keyed(formKey), request: header("Content-Type", "application/json"), status: 415, fact: "form"},
	{name: "form over the limit", locker: Down, guard: keyed(formKey), options: options(middleware.BodyLimit(3)), request: form("id=1"), status: 413},
	{name: "form of a method that has none", locker: Down, guard: keyed(formKey), request: formOf("GET"), status: 400, typ: "ErrKey", fact: "form.id"},

	// A name that encoding/json finds in other letters is not missing.
	{name: "condition on a name in other letters", locker: Down, guard: keyed(guard.When(`body.kind == "transfer"`)), request: body(`{"id":"1","KIND":"transfer"}`), status: 400, typ: "ErrKey", fact: "body.kind", detail: "in other letters"},
	{name: "condition on a name with a Kelvin sign", locker: Down, guard: keyed(guard.When(`body.kind != nil`)), request: body(`{"\u212aind":"transfer"}`), status: 400, typ: "ErrKey", fact: "body.kind"},
	{name: "default for a name in other letters", locker: Down, guard: keyed(guard.Key(`order:#{body.tenant ?? "public"}`)), request: body(`{"Tenant":"a"}`), status: 400, typ: "ErrKey", fact: `body.tenant ?? "public"`},
	{name: "default by a function for a name in other letters", locker: Down, guard: keyed(guard.Key(`order:#{coalesce(body.tenant, "public")}`)), request: body(`{"tenanT":"a"}`), status: 400, typ: "ErrKey", fact: `coalesce(body.tenant, "public")`},
	{name: "name in quotes and other letters", locker: Down, guard: keyed(guard.Key(`order:#{body["the-id"] ?? "none"}`)), request: body(`{"The-ID":"a"}`), status: 400, typ: "ErrKey", fact: `body["the-id"] ?? "none"`},
	{name: "name in a list and other letters", locker: Down, guard: keyed(guard.When(`any(body.l, .id == 7)`)), request: body(`{"id":"1","l":[{"id":1},{"iD":7}]}`), status: 400, typ: "ErrKey", fact: "body.l"},
	{name: "whether there is a name, in other letters", locker: Down, guard: keyed(guard.When(`"kind" in body`)), request: body(`{"id":"1","Kind":7}`), status: 400, typ: "ErrKey", fact: "body"},
	{name: "hash of a body with a name in other letters", locker: Down, guard: keyed(guard.Key(`#{body.id}:#{hash(body)}`)), request: body(`{"ID":"a"}`), status: 400, typ: "ErrKey", fact: "body.id"},
	{name: "name in other letters that nobody asks for", locker: Free, guard: keyed(bodyKey), request: body(`{"id":"1","l":[{"ID":2}]}`), status: 200, ran: true, body: "done"},

	// A handler that goes by the type of a body sees other facts.
	{name: "body of no JSON type", locker: Down, guard: keyed(bodyKey), request: typed("text/plain"), status: 415, fact: "body", detail: "middleware.BodyIsJSON"},
	{name: "body of a form's type", locker: Down, guard: keyed(bodyKey), request: typed("application/x-www-form-urlencoded"), status: 415, fact: "body"},
	{name: "body of a type in capitals", locker: Down, guard: keyed(bodyKey), request: typed("Application/JSON"), status: 415, fact: "body"},
	{name: "body of a JSON type with a parameter", locker: Free, guard: keyed(bodyKey), request: typed("application/json; charset=utf-8"), status: 200, ran: true, body: "done"},
	{name: "body of any type that the handler takes for JSON", locker: Free, guard: keyed(bodyKey), options: options(middleware.BodyIsJSON()), request: typed("text/plain"), status: 200, ran: true, body: "done"},
	{name: "body of no JSON type that no key uses", locker: Free, request: typed("text/plain"), status: 200, ran: true, body: "done"},
	{name: "query beside a form", locker: Down, guard: keyed(queryKey), request: beside(form("id=2")), status: 415, fact: "query", detail: "middleware.QueryOnly"},
	{name: "query beside a form of many parts", locker: Down, guard: keyed(queryKey), request: beside(parts("id", "2")), status: 415, fact: "query"},
	{name: "query beside an empty form", locker: Free, guard: keyed(queryKey), request: beside(typed("application/x-www-form-urlencoded")), status: 200, ran: true, body: "done"},
	{name: "query beside a form that the handler does not read", locker: Free, guard: keyed(queryKey), options: options(middleware.QueryOnly()), request: beside(form("id=2")), status: 200, ran: true, body: "done"},
	{name: "form beside its name in the query", locker: Down, guard: keyed(formKey), request: beside(form("id=2")), status: 400, typ: "ErrKey", fact: "form.id"},
	{name: "default for a form beside its name in the query", locker: Down, guard: keyed(guard.Key(`order:#{form.id ?? "none"}`)), request: beside(form("page=2")), status: 400, typ: "ErrKey", fact: `form.id ?? "none"`},
	{name: "key from a form of many parts", locker: Free, guard: keyed(formKey), request: parts("id", "1", "page", "2"), handler: echoForm, status: 200, ran: true, body: "1 2"},
	{name: "two in a form of many parts", locker: Down, guard: keyed(formKey), request: parts("id", "1", "id", "2"), status: 400, typ: "ErrKey", fact: "form.id"},
	{name: "malformed form of many parts", locker: Down, guard: keyed(formKey), request: typed("multipart/form-data; boundary=b"), status: 400, fact: "form"},
	{name: "form of many parts over the limit", locker: Down, guard: keyed(formKey), options: options(middleware.BodyLimit(50)), request: parts("id", "1"), status: 413},

	{name: "path with needless escapes", locker: Free, guard: keyed(guard.When(`path.id == "7f3a"`)), request: path("/orders/%37f%33a"), status: 200, ran: true, body: "done"},

	{name: "path value that the route lacks", locker: Down, guard: keyed(guard.Key("order:#{path.idd}")), status: 500, typ: "ErrFault"},
	{name: "path value that the route lacks, default", locker: Down, guard: keyed(guard.Key(`order:#{path.idd ?? "none"}`)), status: 500, typ: "ErrFault"},
	{name: "Host among the headers", locker: Down, guard: keyed(guard.Key("order:#{header.Host}")), status: 500, typ: "ErrFault"},

	{name: "fact of the application", locker: Free, guard: keyed(userKey), options: user("7f3a", nil), status: 200, ran: true, body: "done"},
	{name: "empty fact of the application", locker: Down, guard: keyed(userKey), options: user("", nil), status: 400, typ: "ErrKey", fact: "user"},
	{name: "refused fact of the application", locker: Down, guard: keyed(userKey), options: user("", fmt.Errorf("7f3a: %w", guard.ErrKey)), status: 400, typ: "ErrKey", fact: "user"},
	{name: "failed fact of the application", locker: Down, guard: keyed(userKey), options: user("", errors.New("10.9.8.7: no")), status: 500, typ: "ErrFault"},
	{name: "fact of the application that is over a limit of its own", locker: Down, guard: keyed(userKey), options: user("", &http.MaxBytesError{}), status: 500, typ: "ErrFault"},
	{name: "outage of a fact of the application", locker: Down, guard: keyed(userKey), options: user("", fmt.Errorf("10.9.8.7: %w", guard.ErrOutage)), status: 503, typ: "ErrOutage", retry: "1"},

	{name: "key function", locker: Free, keyless: true, guard: keyFunc("7f3a", nil), status: 200, ran: true, body: "done"},
	{name: "key function without a key", locker: Down, keyless: true, guard: keyFunc("", nil), status: 400, typ: "ErrKey", detail: "A value that the lock needs is missing"},
	{name: "key function that refuses", locker: Down, keyless: true, guard: keyFunc("", fmt.Errorf("7f3a: %w", guard.ErrKey)), status: 400, typ: "ErrKey"},
	{name: "key function that fails", locker: Down, keyless: true, guard: keyFunc("", errors.New("10.9.8.7: no")), status: 500, typ: "ErrFault"},
	{name: "key function during an outage", locker: Down, keyless: true, guard: keyFunc("", fmt.Errorf("10.9.8.7: %w", guard.ErrOutage)), status: 503, typ: "ErrOutage", retry: "1"},

	{name: "busy", locker: Busy(1900 * time.Millisecond), status: 409, typ: "ErrBusy", retry: "2"},
	{name: "busy, compressed", locker: Busy(0), gzip: true, status: 409, typ: "ErrBusy", retry: "1"},
	{name: "busy for whole seconds", locker: Busy(3 * time.Second), status: 409, typ: "ErrBusy", retry: "3"},
	{name: "busy for a moment", locker: Busy(time.Millisecond), status: 409, typ: "ErrBusy", retry: "1"},
	{name: "busy for nobody knows", locker: Busy(0), status: 409, typ: "ErrBusy", retry: "1"},
	{name: "busy 423", locker: Busy(0), options: options(middleware.Status(guard.ErrBusy, 423)), status: 423, typ: "ErrBusy", retry: "1"},
	{name: "busy 429", locker: Busy(0), options: options(middleware.Status(guard.ErrBusy, 429)), status: 429, typ: "ErrBusy", retry: "1"},
	{name: "busy 503", locker: Busy(0), options: options(middleware.Status(guard.ErrBusy, 503)), status: 503, typ: "ErrBusy", retry: "1"},
	{name: "busy, HEAD", locker: Busy(0), request: method("HEAD"), status: 409, typ: "ErrBusy", retry: "1"},
	{name: "busy, skip", locker: Busy(0), guard: keyed(guard.Busy(guard.Skip)), status: 204},
	{name: "busy, run unlocked", locker: Busy(0), guard: keyed(guard.Busy(guard.RunUnlocked)), status: 200, ran: true, body: "done"},
	{name: "busy, fallback", locker: Busy(0), options: fallback, status: 202, body: "order.settle: lock: held by others {\"id\":\"7f3a\"}"},
	{name: "busy, fallback for an outage only", locker: Busy(0), guard: keyed(guard.Busy(guard.Skip)), options: fallback, status: 204},
	{name: "busy, fallback that says nothing", locker: Busy(0), options: options(middleware.Fallback(func(http.ResponseWriter, *http.Request, error) {})), status: 200},
	{name: "fallback, free", locker: Free, options: fallback, status: 200, ran: true, body: "done"},
	{name: "fallback, no header", locker: Down, guard: keyed(tenantKey), options: fallback, status: 400, typ: "ErrKey", fact: "header.Tenant"},
	{name: "fallback, refused", locker: Refusing, options: fallback, status: 500, typ: "ErrFault"},

	{name: "outage", locker: Down, status: 503, typ: "ErrOutage", retry: "1"},
	{name: "outage, skip", locker: Down, guard: keyed(guard.Outage(guard.Skip)), status: 204},
	{name: "outage, run unlocked", locker: Down, guard: keyed(guard.Outage(guard.RunUnlocked)), status: 200, ran: true, body: "done"},
	{name: "refused by the lock service", locker: Refusing, status: 500, typ: "ErrFault"},
	{name: "refused by the lock service, run unlocked", locker: Refusing, guard: keyed(guard.Outage(guard.RunUnlocked)), status: 500, typ: "ErrFault"},
	{name: "unsupported", locker: Unsupporting, status: 500, typ: "ErrUnsupported"},

	{name: "lost", locker: Losing, handler: silent, status: 500, typ: "ErrLost", ran: true},
	{name: "lost, compressed", locker: Losing, gzip: true, handler: silent, status: 500, typ: "ErrLost", ran: true},
	{name: "success, compressed", locker: Free, gzip: true, ran: true, status: 200, body: "done"},
	{name: "lost after an error", locker: Losing, handler: text(418, "no"), status: 418, ran: true, body: "no"},
	{name: "lost after a large error", locker: Losing, handler: text(418, strings.Repeat("no", 5000)), status: 418, ran: true, body: strings.Repeat("no", 5000)},
	{name: "lost after a success", locker: Losing, ran: true, status: 500, typ: "ErrLost"},
	{name: "lost after a copy", locker: Losing, ran: true, status: 500, typ: "ErrLost", handler: func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(w, io.LimitReader(strings.NewReader("all of it"), 9)) // by ReadFrom
	}},
	{name: "lost after a copy of nothing", locker: Losing, ran: true, status: 500, typ: "ErrLost", handler: func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(w, io.LimitReader(strings.NewReader(""), 9))
	}},
	{name: "lost after a string", locker: Losing, ran: true, status: 500, typ: "ErrLost", handler: func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "done")
	}},
	{name: "lost after a large success", locker: Losing, ran: true, broken: true, handler: text(200, strings.Repeat("done", 5000))},
	{name: "lost after a flush", locker: Losing, ran: true, broken: true, handler: func(w http.ResponseWriter, r *http.Request) {
		text(200, "half")(w, r)
		w.(http.Flusher).Flush()
	}},

	{name: "deadline", locker: Waiting, guard: keyed(guard.Wait(time.Hour)), request: header("Test-Context", "deadline"), status: 504},
	{name: "canceled by the server", locker: Waiting, guard: keyed(guard.Wait(time.Hour)), request: header("Test-Context", "canceled"), status: 503, body: ""},
}

func method(m string) func(*http.Request) { return func(r *http.Request) { r.Method = m } }

func query(q string) func(*http.Request) {
	return func(r *http.Request) { r.URL.RawQuery, r.Body, r.ContentLength = q, nil, 0 }
}

// beside is a request with an id in its query and something in its body.
func beside(request func(*http.Request)) func(*http.Request) {
	return func(r *http.Request) { query("id=1")(r); request(r) }
}

func typed(contentType string) func(*http.Request) { return header("Content-Type", contentType) }

// path is a request for a path as it is escaped.
func path(escaped string) func(*http.Request) {
	return func(r *http.Request) { r.URL.Path, r.URL.RawPath = "/orders/"+secret, escaped }
}

// parts is a form of type multipart/form-data.
func parts(fields ...string) func(*http.Request) {
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for i := 0; i < len(fields); i += 2 {
		_ = w.WriteField(fields[i], fields[i+1])
	}
	_ = w.Close()
	return func(r *http.Request) { body(b.String())(r); typed(w.FormDataContentType())(r) }
}

func header(name string, values ...string) func(*http.Request) {
	return func(r *http.Request) { r.Header[name] = values }
}

func body(text string) func(*http.Request) {
	return func(r *http.Request) {
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader(text)), int64(len(text))
	}
}

// mebibyte is a body of so many bytes more.
func mebibyte(more int) func(*http.Request) {
	const head, tail = `{"id":"7f3a","text":"`, `"}`
	return body(head + strings.Repeat("x", 1<<20+more-len(head)-len(tail)) + tail)
}

func text(status int, s string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, s)
	}
}

// silent leaves headers for a body that it does not write.
func silent(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Length", "5")
	for _, name := range ofBodies {
		w.Header().Set(name, "max-age=3600")
	}
}

var (
	tenantKey = guard.Key("order:#{header.Tenant}")
	queryKey  = guard.Key("order:#{query.id}")
	bodyKey   = guard.Key("order:#{body.id}")
	cookieKey = guard.Key("order:#{cookie.id}")
	formKey   = guard.Key("order:#{form.id}")
	userKey   = guard.Key("order:#{user}")
)

// user is an application that knows its user, or fails to.
func user(name string, err error) []middleware.Option {
	return options(middleware.WithFacts("user", func(*http.Request) (string, error) { return name, err }))
}

func keyFunc(key string, err error) []guard.Option {
	return keyed(guard.KeyFunc(func(r *http.Request) (string, error) {
		if r.PathValue("id") != secret {
			return "", errors.New("not the request")
		}
		return key, err
	}))
}

// fallback answers with the reason and with what the request has sent.
var fallback = options(middleware.Fallback(func(w http.ResponseWriter, r *http.Request, err error) {
	e, ok := errors.AsType[*guard.Error](err)
	if !ok || guard.Held(r.Context(), e.Guard) {
		panic(err)
	}
	sent, _ := io.ReadAll(r.Body)
	text(202, fmt.Sprintf("%s: %v %s", e.Guard, e.Err, sent))(w, r)
}))

func form(text string, headers ...string) func(*http.Request) {
	return func(r *http.Request) {
		body(text)(r)
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
	}
}

func formOf(method string) func(*http.Request) {
	return func(r *http.Request) { form("id=1&page=2")(r); r.Method = method }
}

// echoForm reads the form that the key was taken from.
func echoForm(w http.ResponseWriter, r *http.Request) {
	text(200, r.PostFormValue("id")+" "+r.PostFormValue("page"))(w, r)
}

func keyed(o ...guard.Option) []guard.Option { return o }

func options(o ...middleware.Option) []middleware.Option { return o }
