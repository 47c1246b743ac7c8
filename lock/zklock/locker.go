package zklock

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/leases"
)

// DefaultRoot is the node below which the nodes of the keys are.
const DefaultRoot = "/locks"

// Option sets up a Locker.
type Option interface{ apply(*settings) }

type option func(*settings)

func (f option) apply(s *settings) { f(s) }

type settings struct {
	root    string
	acl     []zk.ACL
	timeout time.Duration
}

// Root sets the node below which there is one node for each key. It is made if it is missing. The path of a key's node is what Curator's
// locks are made with. A chroot or a namespace of Curator's is a part of the root. The default is DefaultRoot.
func Root(path string) Option { return option(func(s *settings) { s.root = path }) }

// ACL sets who may do what with all nodes that the Locker makes. Everybody who takes the same locks has to be able to read and make
// children of a key's node. The default is zk.WorldACL(zk.PermAll).
func ACL(acl ...zk.ACL) Option { return option(func(s *settings) { s.acl = acl }) }

// Timeout bounds how long the servers may be silent before that is an outage. The default is leases.DefaultTimeout or, if that is less,
// half of the session's timeout.
func Timeout(d time.Duration) Option { return option(func(s *settings) { s.timeout = d }) }

// Locker is a [lock.Locker] whose locks are lines of ephemeral nodes. Create one with New. It is safe for concurrent use and needs no
// closing. Its methods and those of its holds are described at [leases.Locker].
type Locker struct{ *leases.Locker }

var _ lock.Locker = (*Locker)(nil)

// unserved is why a Locker refuses some kinds.
const unserved = "ZooKeeper wakes those who wait, so that nobody spins; and a line of nodes does not tell how many may hold at once"

// New returns a Locker that takes its locks in s, which must be open while it is used.
func New(s *Session, opts ...Option) (*Locker, error) {
	if s == nil {
		return nil, errors.New("zklock: no session: Connect makes one")
	}
	set := settings{root: DefaultRoot, acl: zk.WorldACL(zk.PermAll), timeout: min(leases.DefaultTimeout, s.set.timeout/2)}
	for _, o := range opts {
		if o != nil {
			o.apply(&set)
		}
	}
	set.root = strings.TrimSuffix(set.root, "/")
	if err := checkRoot(set.root); err != nil {
		return nil, err
	}
	if len(set.acl) == 0 {
		return nil, errors.New("zklock: the ACL is empty: nobody could use the nodes")
	}
	host, _ := os.Hostname()
	st := &store{s: s, root: set.root, acl: set.acl, data: fmt.Appendf(nil, "%s/%d", host, os.Getpid()), timeout: set.timeout}
	l, err := leases.New(st, leases.Watchdog(s.set.timeout), leases.Timeout(set.timeout),
		leases.Kinds(unserved, lock.Exclusive, lock.Fair, lock.Fenced, lock.Read, lock.Write))
	if err != nil {
		return nil, fmt.Errorf("zklock: %w", err)
	}
	return &Locker{l}, nil
}
