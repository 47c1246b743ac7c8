package console

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// protect puts what all requests must pass, after they were admitted, in front of the pages. A browser that sends a form
// from another site's page says so, in Sec-Fetch-Site or Origin.
func (h *handler) protect() http.Handler {
	p := http.NewCrossOriginProtection()
	p.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.log.WarnContext(r.Context(), "console: form of another site refused", "remote", r.RemoteAddr, "origin", r.Header.Get("Origin"))
		h.problem(w, http.StatusForbidden, "Refused", "This form was sent by a page of another site. Nothing was changed.")
	}))
	return p.Handler(http.HandlerFunc(h.route))
}

// secure sets the headers of all answers. A page loads nothing from elsewhere, runs no script but the console's own, is in no
// frame and in no cache. The referrer policy is not no-referrer, with which browsers hide the origin of our own forms, too.
func secure(h http.Header) {
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "+
		"form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

var (
	errElsewhere = errors.New("embedded by another site")
	errNotLocal  = errors.New("not from this machine, and there is no console.Authorize")
)

// admit reports why a request may see nothing at all.
func (h *handler) admit(r *http.Request) error {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "cross-site", "same-site": // another port of this host is the same site
		if r.Header.Get("Sec-Fetch-Mode") != "navigate" {
			return errElsewhere // it could not read the answer, but would have Redis asked
		}
	}
	if h.authorize != nil {
		return h.authorize(r)
	}
	return local(r)
}

// proxied are headers that a proxy adds. A request through one comes from elsewhere, whatever the address.
var proxied = []string{"Forwarded", "Via", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-Ip"}

// local reports why r does not come from this machine. The name that it asks for counts, too: the page of a stranger's site
// whose name was made to point to 127.0.0.1 is, for a browser on this machine, of the same origin.
func local(r *http.Request) error {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || !peer.Addr().Unmap().IsLoopback() {
		return errNotLocal
	}
	if !loopbackName(r.Host) {
		return fmt.Errorf("%w: it asks for another host", errNotLocal)
	}
	for _, name := range proxied {
		if r.Header[name] != nil {
			return fmt.Errorf("%w: it came through a proxy (%s)", errNotLocal, name)
		}
	}
	return nil
}

// loopbackName reports whether a Host header can only mean this machine.
func loopbackName(hostport string) bool {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = strings.Trim(hostport, "[]")
	}
	if strings.EqualFold(strings.TrimSuffix(host, "."), "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}

// deny answers a request that may see nothing, without a page around it.
func deny(w http.ResponseWriter, err error) {
	text := "You may not see this console."
	if errors.Is(err, errNotLocal) {
		text = "This console answers requests from its own machine only. The option console.Authorize opens it to others."
	}
	http.Error(w, text, http.StatusForbidden)
}

// mayFree reports why a request may not free a lock.
func (h *handler) mayFree(r *http.Request) error {
	if h.allowFree == nil {
		return errReadOnly
	}
	return h.allowFree(r)
}

var (
	errReadOnly = errors.New("the console was made without console.AllowFree")
	errNoSwitch = errors.New("the console was made without console.AllowSwitch, or without a registry")
)
