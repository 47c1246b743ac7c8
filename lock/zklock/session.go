package zklock

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
)

// DefaultSessionTimeout is the timeout that a Session asks for.
const DefaultSessionTimeout = 30 * time.Second

// SessionOption sets up a Session.
type SessionOption interface{ applySession(*sessionSettings) }

type sessionOption func(*sessionSettings)

func (f sessionOption) applySession(s *sessionSettings) { f(s) }

type sessionSettings struct {
	timeout time.Duration
	dial    zk.Dialer
	auth    []credential
}

type credential struct {
	scheme string
	secret []byte
}

// SessionTimeout sets how long the locks of a process that crashed outlive it. The default is DefaultSessionTimeout. The servers cut it
// to between 2 and 20 of their ticks, if not configured otherwise. Less than 100ms is refused.
func SessionTimeout(d time.Duration) SessionOption {
	return sessionOption(func(s *sessionSettings) { s.timeout = d })
}

// Auth adds credentials, such as "digest" and "user:password". They are sent before anything else, on each connection.
func Auth(scheme string, secret []byte) SessionOption {
	return sessionOption(func(s *sessionSettings) { s.auth = append(s.auth, credential{scheme, secret}) })
}

// Dialer sets how connections are made, such as with TLS. The default is net.DialTimeout.
func Dialer(dial zk.Dialer) SessionOption {
	return sessionOption(func(s *sessionSettings) { s.dial = dial })
}

// Session is a client of ZooKeeper with a session of its own, and after that has expired with the next one. It is safe for concurrent
// use, and any number of Lockers may share it.
//
// It does not take a zk.Conn that somebody else has made, because that does not tell what the servers have granted it, begins a
// new session without a word, and lets its owner's work fill its queue or its callback block it.
type Session struct {
	conn     *zk.Conn
	set      sessionSettings
	closed   chan struct{}
	closing  sync.Once
	finished sync.WaitGroup
	watches  watches

	mu    sync.Mutex
	id    int64 // 0 without a session
	wire  *wire
	proof proof
	// ready is closed while there is a session and the credentials are accepted.
	ready      chan struct{}
	authorized bool
	refused    error              // if they are not accepted
	nodes      map[*node]struct{} // that the present session has made
	open       int                // questions
	asked      time.Time          // since when a question is open, or no server has answered it; zero after an answer
}

// Connect begins a session with any of the servers, each a "host:port". It returns at once: while no server can be
// reached, taking a lock fails as in an outage. Its errors are mistakes, or names that can't be resolved. Close ends
// the session.
func Connect(servers []string, opts ...SessionOption) (*Session, error) {
	s := &Session{set: sessionSettings{timeout: DefaultSessionTimeout, dial: net.DialTimeout},
		closed: make(chan struct{}), ready: make(chan struct{}), nodes: make(map[*node]struct{})}
	for _, o := range opts {
		if o != nil {
			o.applySession(&s.set)
		}
	}
	switch {
	case len(servers) == 0:
		return nil, errors.New(`zklock: no servers: name them as "host:port"`)
	case slices.ContainsFunc(servers, func(a string) bool { return strings.ContainsAny(a, "/,") }):
		return nil, fmt.Errorf(`zklock: of the servers %q, each must be a "host:port" of its own; a chroot belongs into Root`, servers)
	case s.set.timeout < 100*time.Millisecond:
		return nil, fmt.Errorf("zklock: a session timeout of %v is under 100ms", s.set.timeout)
	case s.set.dial == nil:
		return nil, errors.New("zklock: the dialer is nil")
	}
	s.proof.timeout, s.authorized = s.set.timeout, len(s.set.auth) == 0
	if len(servers) == 1 { // the library pauses for a second before it tries the server again with which it was connected last
		servers = []string{servers[0], servers[0]}
	}
	conn, events, err := zk.Connect(servers, s.set.timeout, zk.WithDialer(s.dial), zk.WithLogger(silence{}), zk.WithLogInfo(false))
	if err != nil {
		return nil, fmt.Errorf("zklock: %w", err)
	}
	s.conn = conn
	s.finished.Go(func() {
		for range events { // until the library has ended
		}
	})
	s.finished.Go(s.authorize)
	s.finished.Go(s.beat)
	return s, nil
}

// silence is the library's log. Our errors say what is worth saying.
type silence struct{}

func (silence) Printf(string, ...any) {}

func (s *Session) dial(network, address string, timeout time.Duration) (net.Conn, error) {
	c, err := s.set.dial(network, address, timeout)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	old, patience := s.wire, max(s.proof.timeout/3, 100*time.Millisecond)
	s.mu.Unlock()
	if old != nil {
		_ = old.Close() // the library leaves it open if the session has expired
	}
	w := &wire{Conn: c, patience: patience}
	w.attached = func(sent time.Time, id int64, timeout time.Duration) { s.attach(w, sent, id, timeout) }
	return w, nil
}

// attach notes the answer to a handshake. The library has not used the connection yet, so everything that is answered later is later.
func (s *Session) attach(w *wire, sent time.Time, id int64, timeout time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if id != s.id {
		s.endLocked(errExpired)
		s.proof.until = time.Time{}
	}
	s.wire = w
	if id == 0 {
		return
	}
	s.proof.attach(sent, timeout, id != s.id)
	s.id = id
	s.readyLocked()
}

// endLocked ends the present session, and with it all of its nodes.
func (s *Session) endLocked(reason error) {
	if s.id != 0 && s.authorized {
		s.ready = make(chan struct{})
	}
	ended := s.id
	s.id = 0
	for n := range s.nodes {
		go n.lose(ended, reason)
	}
	clear(s.nodes)
}

func (s *Session) readyLocked() {
	if s.id == 0 || !s.authorized {
		return
	}
	select {
	case <-s.ready:
	default:
		close(s.ready)
	}
}

// authorize sends the credentials until they are accepted. The library repeats them from then on.
func (s *Session) authorize() {
	for _, c := range s.set.auth {
		err := s.conn.AddAuth(c.scheme, c.secret)
		for err != nil && !errors.Is(err, zk.ErrAuthFailed) && s.sleep(50*time.Millisecond) {
			err = s.conn.AddAuth(c.scheme, c.secret)
		}
		if err != nil {
			s.mu.Lock()
			s.refused = refusal("the credentials for "+c.scheme, err)
			s.mu.Unlock()
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.authorized = true
	s.readyLocked()
}

// sleep waits for d and reports whether the session is still open then.
func (s *Session) sleep(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-s.closed:
		return false
	}
}

// Close ends the session and with it all locks that were taken in it, also those that were kept. It waits up to a second for the servers.
func (s *Session) Close() error {
	s.closing.Do(func() {
		s.mu.Lock()
		s.endLocked(errClosed)
		s.mu.Unlock()
		close(s.closed)
		s.drain()
		s.conn.Close()
		s.mu.Lock()
		w := s.wire
		s.mu.Unlock()
		if w != nil {
			_ = w.Close() // the library would wait for a silent server
		}
	})
	s.finished.Wait()
	return nil
}

// drain waits a moment for the questions that are open: the library reads the answers to some of them while it closes.
func (s *Session) drain() {
	for range 100 {
		s.mu.Lock()
		open := s.open
		s.mu.Unlock()
		if open == 0 {
			return
		}
		<-time.After(5 * time.Millisecond)
	}
}

// begin notes that a question is open, and returns in which session and on which connection. There are none after Close.
func (s *Session) begin() (id int64, w *wire, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.closed:
		return 0, nil, errClosed
	default:
	}
	s.open++
	return s.id, s.wire, nil
}

// state returns the present session, or 0, and until when it can't have expired.
func (s *Session) state() (id int64, until time.Time, timeout time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.id, s.proof.until, s.proof.timeout
}

// connected waits until there is a session.
func (s *Session) connected(ctx context.Context) error {
	s.mu.Lock()
	ready, refused := s.ready, s.refused
	s.mu.Unlock()
	if refused != nil {
		return refused
	}
	select {
	case <-ready:
		return nil
	default:
	}
	select {
	case <-ready:
		return nil
	case <-s.closed:
		return errClosed
	case <-ctx.Done():
		return fmt.Errorf("%w: there is no session: %w", errSilent, context.Cause(ctx))
	}
}

// enroll has n lost with the session in which it was made.
func (s *Session) enroll(n *node, id int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.id != id {
		go n.lose(id, errExpired)
		return
	}
	s.nodes[n] = struct{}{}
}

func (s *Session) dismiss(n *node) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.nodes, n)
}
