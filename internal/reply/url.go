package reply

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// Dialling is how a client of Redis makes its connections. The zero value has go-redis' defaults.
type Dialling struct {
	Timeout     time.Duration // of one attempt
	Pool        int           // connections to one server
	Name        string        // of each connection, unless the URL has a client_name; what Redis has not in names is a dash
	Credentials func(context.Context) (user, password string, err error)
	TLS         *tls.Config // of a URL that says TLS; nil goes by what the host trusts
}

// Client returns a client of what a URL names, which connects when it is used: the master that sentinels call master_name, as
// [redis.ParseFailoverURL] has it, a cluster if there are addr parameters, as [redis.ParseClusterURL] has it, or else a server, as
// [redis.ParseURL] has it. It asks masters alone, whatever the URL says. An error quotes nothing of a password.
func (d Dialling) Client(text string) (redis.UniversalClient, error) {
	if err := CheckURL(text); err != nil {
		return nil, err
	}
	u, _ := url.Parse(text)
	switch q := u.Query(); {
	case q.Has("master_name"):
		o, err := redis.ParseFailoverURL(text)
		if err != nil {
			return nil, err
		}
		o.RouteByLatency, o.RouteRandomly, o.ReplicaOnly, o.DialerRetries, o.PoolSize = false, false, false, 1, cmp.Or(o.PoolSize, d.Pool)
		d.set(&o.ContextTimeoutEnabled, &o.MaxRetries, &o.DialTimeout, &o.CredentialsProviderContext, &o.Dialer, o.TLSConfig, o.Protocol, &o.ClientName, &o.OnConnect)
		return redis.NewFailoverClient(o), nil
	case q.Has("addr"):
		o, err := redis.ParseClusterURL(text)
		if err != nil {
			return nil, err
		}
		o.RouteByLatency, o.RouteRandomly, o.ReadOnly, o.DialerRetries = false, false, false, 1
		d.set(&o.ContextTimeoutEnabled, &o.MaxRetries, &o.DialTimeout, &o.CredentialsProviderContext, &o.Dialer, o.TLSConfig, o.Protocol, &o.ClientName, &o.OnConnect)
		return redis.NewClusterClient(o), nil
	}
	o, err := redis.ParseURL(text)
	if err != nil {
		return nil, err
	}
	o.PoolSize = cmp.Or(o.PoolSize, d.Pool)
	d.set(&o.ContextTimeoutEnabled, &o.MaxRetries, &o.DialTimeout, &o.CredentialsProviderContext, &o.Dialer, o.TLSConfig, o.Protocol, &o.ClientName, &o.OnConnect)
	return redis.NewClient(o), nil
}

// set sets what options of all three types have.
func (d Dialling) set(bounded *bool, retries *int, timeout *time.Duration, credentials *func(context.Context) (string, string, error), dialer *Dialer, secure *tls.Config, protocol int, named *string, connected *func(context.Context, *redis.Conn) error) {
	if secure != nil && d.TLS != nil {
		secure.RootCAs, secure.Certificates = d.TLS.RootCAs, d.TLS.Certificates
	}
	*bounded, *retries, *timeout, *credentials = true, -1, cmp.Or(d.Timeout, *timeout, 5*time.Second), d.Credentials // 5s is go-redis', too
	*dialer = Bounded(redis.NewDialer(&redis.Options{DialTimeout: *timeout, TLSConfig: secure}))
	// go-redis' own way is CLIENT SETNAME, too, and a user who may not do that has no connection then. Each user may say HELLO.
	name := regexp.MustCompile(`[^!-~]`).ReplaceAllString(cmp.Or(*named, d.Name), "-")
	*named, *connected = "", func(ctx context.Context, conn *redis.Conn) error {
		if err := conn.Hello(ctx, cmp.Or(protocol, 3), "", "", name).Err(); !IsReply(err) {
			return err
		}
		return nil // without a name
	}
}

// CheckURL says why text is no URL of a server, or one that was meant to have a password and has it elsewhere. It quotes nothing that
// may be a part of the password: where a character in that is not escaped, that is what a parser complains about.
func CheckURL(text string) error {
	if strings.TrimSpace(text) != text {
		return errors.New("this is no URL: it begins or ends with a blank or a line end")
	}
	u, err := url.Parse(text)
	if err == nil && !spilt(u) {
		if u.User != nil && u.Host == "" && u.Scheme != "unix" {
			return errors.New("this is no URL: there is no host behind the @")
		}
		return nil
	}
	if strings.Contains(text, "@") {
		return errors.New("this is no URL: in a user's name or password, write %25 for %, %2F for /, %3F for ?, %23 for #, %20 for a blank")
	}
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err // without the URL
	}
	if err == nil {
		err = errors.New("it has a #")
	}
	return fmt.Errorf("this is no URL: %w", err)
}

// spilt reports whether a URL has the end of a password where none belongs.
func spilt(u *url.URL) bool {
	name, _, at := strings.Cut(u.RawQuery, "@")
	return u.Fragment != "" || strings.Contains(u.Path, "@") || at && u.User == nil && !strings.Contains(name, "=")
}
