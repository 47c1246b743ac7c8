package console

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode"
)

// pasted is a request that somebody has as text: a line with the method and the address, or the address alone; lines of
// headers; an empty line; the body. A line that begins with the name of a fact, such as "path.id: 7" or
// `claims: {"tenant":"acme"}`, gives that fact.
type pasted struct {
	method string
	url    *url.URL
	header http.Header
	given  map[string]json.RawMessage // facts by root
	body   string
}

var errAddress = errors.New("the first line is no address")

func readRequest(text string) (*pasted, error) {
	head, body, _ := strings.Cut(strings.TrimLeftFunc(text, unicode.IsSpace), "\n\n")
	lines := strings.Split(head, "\n")
	p := &pasted{method: http.MethodGet, header: http.Header{}, given: map[string]json.RawMessage{}, body: strings.TrimSpace(body)}
	words := strings.Fields(lines[0])
	if len(words) == 0 {
		return nil, errAddress
	}
	if len(words) > 1 && !strings.Contains(words[0], "/") {
		p.method, words = strings.ToUpper(words[0]), words[1:]
	} else if p.body != "" {
		p.method = http.MethodPost
	}
	var err error
	if p.url, err = url.Parse(words[0]); err != nil || p.url.Path == "" && p.url.Host == "" {
		return nil, errAddress
	}
	for i, line := range lines[1:] {
		name, value, ok := strings.Cut(line, ":")
		if !ok || strings.ContainsAny(name, " {}[]\"") { // a body without an empty line before it
			p.body = strings.TrimSpace(strings.Join(lines[i+1:], "\n") + "\n\n" + body)
			break
		}
		p.header.Add(name, strings.TrimSpace(value))
		if err := p.give(strings.TrimSpace(name), strings.TrimSpace(value)); err != nil {
			return nil, err
		}
	}
	return p, nil
}

var errFactTwice = errors.New("a fact is given as a whole and by its members")

// give keeps a line as a fact, in case that it is one. Two headers are called as facts are where names are in lower case.
func (p *pasted) give(name, value string) error {
	if name == "host" || name == "cookie" && !strings.HasPrefix(value, "{") {
		return nil
	}
	text := json.RawMessage(value)
	if !json.Valid(text) {
		text, _ = json.Marshal(value)
	}
	root, member, ok := strings.Cut(name, ".")
	if !ok {
		p.given[root] = text
		return nil
	}
	members := map[string]json.RawMessage{}
	if before := p.given[root]; before != nil && json.Unmarshal(before, &members) != nil {
		return errFactTwice
	}
	members[member] = text
	p.given[root], _ = json.Marshal(members)
	return nil
}

// facts are those that the request has, for a guard with these roots.
func (p *pasted) facts(roots []string) map[string]json.RawMessage {
	facts := map[string]json.RawMessage{}
	put := func(root string, v any) {
		if text, err := json.Marshal(v); err == nil && slices.Contains(roots, root) {
			facts[root] = text
		}
	}
	put("method", p.method)
	put("host", strings.ToLower(strings.TrimSuffix(hostOf(p), ".")))
	put("path", map[string]string{})
	put("query", single(p.url.Query()))
	put("header", single(p.header))
	put("cookie", p.cookies())
	if form, err := url.ParseQuery(p.body); err == nil && !json.Valid([]byte(p.body)) {
		put("form", single(form))
	}
	for _, root := range []string{"body", "req"} { // what handlers and functions decode a body into
		if json.Valid([]byte(p.body)) {
			put(root, json.RawMessage(p.body))
		}
	}
	for root, text := range p.given {
		if slices.Contains(roots, root) {
			facts[root] = text
		}
	}
	return facts
}

// hostOf is the host that the request is for.
func hostOf(p *pasted) string {
	if host := p.url.Hostname(); host != "" {
		return host
	}
	u := url.URL{Host: p.header.Get("Host")}
	return u.Hostname()
}

// single are the names with one value. A guard refuses those with more.
func single(values map[string][]string) map[string]string {
	one := make(map[string]string, len(values))
	for name, v := range values {
		if len(v) == 1 {
			one[name] = v[0]
		}
	}
	return one
}

func (p *pasted) cookies() map[string]string {
	values := map[string][]string{}
	r := http.Request{Header: p.header}
	for _, c := range r.Cookies() {
		values[c.Name] = append(values[c.Name], c.Value)
	}
	return single(values)
}
