package main

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/url"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/latchkey-go/latchkey/cmd/latchkey/internal/safe"
)

// Which port an address names, and how it is spoken to.

// secrets are the files that an address can't have in it.
type secrets struct{ ca, cert, certKey, password string }

// tls is what rediss:// goes by, beside the certificates that this host trusts.
func (s secrets) tls() (*tls.Config, error) {
	c := &tls.Config{}
	if s.ca != "" {
		text, err := os.ReadFile(s.ca)
		if err != nil {
			return nil, usage("--cacert: %w", err)
		}
		if c.RootCAs = x509.NewCertPool(); !c.RootCAs.AppendCertsFromPEM(text) {
			return nil, usage("--cacert %s: there is no certificate in PEM in it", s.ca)
		}
	}
	if (s.cert == "") != (s.certKey == "") {
		return nil, usage("--cert and --cert-key: want both of them")
	}
	if s.cert != "" {
		pair, err := tls.LoadX509KeyPair(s.cert, s.certKey)
		if err != nil {
			return nil, usage("--cert, --cert-key: %w", err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

// check refuses files that can't be read.
func (s secrets) check() error {
	if s.password != "" {
		if _, err := os.ReadFile(s.password); err != nil {
			return usage("--password-file: %w", err)
		}
	}
	_, err := s.tls()
	return err
}

// credentials reads the password with each connection, as it may be another one by then.
func (s secrets) credentials(u *url.URL) func(context.Context) (name, password string, err error) {
	if s.password == "" {
		return nil
	}
	return func(context.Context) (string, string, error) {
		user, q := u.User.Username(), u.Query()
		if q.Has("master_name") { // the user in front of the host is that of the sentinels
			user = q.Get("username")
		}
		text, err := os.ReadFile(s.password)
		return user, strings.TrimRight(string(text), "\r\n"), err
	}
}

// asking is how long a port may take to say what it is.
const asking = time.Second

// hint is the true kind of a port whose address says something else. It asks the port for its role. It is empty if
// nothing comes out.
func (a *app) hint() string {
	text, _ := a.address()
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "redis" && u.Scheme != "rediss" {
		return ""
	}
	several := u.Query().Has("master_name") || u.Query().Has("addr") // of which this port is one
	addr, secure := net.JoinHostPort(cmp.Or(u.Hostname(), "localhost"), cmp.Or(u.Port(), "6379")), u.Scheme == "rediss"
	said, _, err := role(addr, nil)
	switch redis := strings.HasPrefix(said, "*") || strings.HasPrefix(said, "-"); {
	case redis && secure:
		return "this port has no TLS: write redis:// in place of rediss://"
	case strings.HasSuffix(said, "sentinel\r\n") && !several:
		return "this is a sentinel: write " + u.Scheme + "://" + addr + "?master_name=NAME, with the name that it has for the master"
	case strings.HasSuffix(said, "slave\r\n") && !several:
		return "this server is a replica: write the address of its master, or of the sentinels"
	case redis || errors.As(err, new(*net.OpError)) && !errors.Is(err, syscall.ECONNRESET):
		return ""
	case said != "" && said[0] != alert:
		return "this is no Redis: it says " + safe.Cut(strings.TrimSpace(said), 60)
	}
	config, err := a.tls()
	if err != nil {
		return ""
	}
	config.ServerName, config.InsecureSkipVerify = u.Hostname(), !secure //nolint:gosec // nothing is told to who is not known
	said, shaken, err := role(addr, config)
	switch {
	case !secure && (shaken || told(err)):
		return "this port has TLS: write rediss:// in place of redis://"
	case said != "" && !strings.ContainsAny(said[:1], "*-"):
		return "this is no Redis: it says " + safe.Cut(strings.TrimSpace(said), 60)
	case errors.As(err, new(x509.UnknownAuthorityError)):
		return "nobody that this host trusts has signed its certificate: give that of the authority, --cacert FILE"
	case told(err), shaken && said == "" && len(config.Certificates) == 0:
		return "it wants a certificate of its client: --cert FILE --cert-key FILE"
	case errors.As(err, new(*tls.CertificateVerificationError)):
		return err.Error()
	}
	return ""
}

// told reports whether the other side of TLS has sent an error.
func told(err error) bool {
	e, ok := errors.AsType[*net.OpError](err)
	return ok && e.Op == "remote error"
}

// alert is how an answer of TLS begins to who speaks without.
const alert = '\x15'

// role asks a port for its role in Redis, under TLS if there is a config, and returns the beginning of what it says, and whether it has shaken
// hands.
func role(addr string, config *tls.Config) (said string, shaken bool, err error) {
	conn, err := net.DialTimeout("tcp", addr, asking)
	if err != nil {
		return "", false, err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(asking))
	if config != nil {
		secure := tls.Client(conn, config)
		if err := secure.Handshake(); err != nil {
			return "", false, err
		}
		conn, shaken = secure, true
	}
	if _, err := conn.Write([]byte("ROLE\r\n")); err != nil {
		return "", shaken, err
	}
	r := bufio.NewReader(io.LimitReader(conn, 200))
	for range 3 { // *3, $6, master
		line, err := r.ReadString('\n')
		if said += line; err != nil || said[0] != '*' {
			return said, shaken, err
		}
	}
	return said, shaken, nil
}
