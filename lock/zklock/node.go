package zklock

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/leases"
)

// node is one entry's node in line. The library's questions can't be called off, so what is begun for a node goes on in
// the background when its caller has left: at most one creation, and after that one removal, which does not end before
// it is sure.
type node struct {
	st    *store
	entry *leases.Entry
	dir   string
	guid  string // how the names of all nodes begin that are made for this entry

	mu      sync.Mutex
	path    string // of the node, if it is known that there is one
	session int64  // in which it was made
	doubt   bool   // whether there may be nodes that we don't know of
	making  *errand
	leaving *errand
	gone    chan struct{} // closed when the session has ended
	watched bool          // the node is watched for somebody who deletes it
}

// errand is something that goes on in the background.
type errand struct {
	done chan struct{}
	err  error // then
}

// wait returns the errand's error, or that of ctx.
func (r *errand) wait(ctx context.Context) error {
	select {
	case <-r.done:
		return r.err
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", errSilent, context.Cause(ctx))
	}
}

// node returns that of e, and makes one if there is none yet.
func (st *store) node(e *leases.Entry) *node {
	if n, ok := e.Data.(*node); ok {
		return n
	}
	id := sha256.Sum256([]byte(e.ID))
	n := &node{st: st, entry: e, dir: dir(st.root, e.Key), gone: make(chan struct{}),
		guid: fmt.Sprintf("%s%x-%x-%x-%x-%x-", protection, id[:4], id[4:6], id[6:8], id[8:10], id[10:16])}
	e.Data = n
	return n
}

// lose notes that the session in which n was made has ended, for the reason.
func (n *node) lose(session int64, reason error) {
	n.mu.Lock()
	if n.session != session {
		n.mu.Unlock()
		return
	}
	n.path = ""
	select {
	case <-n.gone:
	default:
		close(n.gone)
	}
	n.mu.Unlock()
	n.entry.Lost(reason)
}

// ensure puts n in line, if it is not there yet.
func (n *node) ensure(ctx context.Context) error {
	n.mu.Lock()
	if n.path != "" {
		n.mu.Unlock()
		return nil
	}
	r := n.making
	if r == nil {
		r = &errand{done: make(chan struct{})}
		n.making = r
		go n.place(ctx, r)
	}
	n.mu.Unlock()
	return r.wait(ctx)
}

// settled waits until nothing is made for n. While ctx lives, that is until the library has come back, at the latest when it is closed.
func (n *node) settled(ctx context.Context) error {
	n.mu.Lock()
	making := n.making
	n.mu.Unlock()
	if making == nil {
		return nil
	}
	if err := making.wait(ctx); ctx.Err() != nil {
		return err
	}
	return nil
}

func (n *node) place(ctx context.Context, r *errand) {
	path, id, err := n.create(ctx)
	n.mu.Lock()
	if err == nil {
		n.path, n.session, n.gone, n.watched = path, id, make(chan struct{}), false
	}
	n.making, r.err = nil, err
	close(r.done)
	n.mu.Unlock()
	if err == nil {
		n.st.s.enroll(n, id)
	}
}

// create makes the node, and its parents if they are missing, until ctx ends. When an answer was lost, it looks for the node before it
// makes another one.
func (n *node) create(ctx context.Context) (path string, id int64, err error) {
	s := n.st.s
	for {
		if err := s.connected(ctx); err != nil {
			return "", 0, err
		}
		if path, id, err = n.createOnce(); err == nil || errors.Is(err, lock.ErrRefused) {
			return path, id, err
		}
		if ctx.Err() != nil || !errors.Is(err, errParents) && !s.sleep(10*time.Millisecond) {
			return "", 0, err
		}
	}
}

func (n *node) createOnce() (path string, id int64, err error) {
	if n.doubt {
		if path, id, err = n.adopt(); path != "" || err != nil {
			return path, id, err
		}
		n.doubt = false
	}
	path, id, err = query(n.st.s, write, func(c *zk.Conn) (string, error) {
		return c.Create(n.dir+"/"+n.guid+mark(n.entry.Kind), n.st.data, zk.FlagEphemeralSequential, n.st.acl)
	})
	if errors.Is(err, zk.ErrNoNode) {
		return "", 0, cmp.Or(n.st.makeParents(n.dir), errParents)
	}
	n.doubt = !heard(err)
	return path, id, refusal("create the node of a lock", err)
}

// adopt returns the node that an earlier attempt has made in the present session, or no path.
func (n *node) adopt() (path string, id int64, err error) {
	names, err := n.find()
	for _, name := range names {
		path = n.dir + "/" + name
		var stat *zk.Stat
		stat, id, err = query(n.st.s, read, func(c *zk.Conn) (*zk.Stat, error) { _, stat, err := c.Exists(path); return stat, err })
		if err != nil || stat.EphemeralOwner == id {
			return path, id, err
		}
	}
	return "", 0, err
}

// makeParents makes the node at path, and those above it, as containers: the servers delete them when they have been empty for a while.
func (st *store) makeParents(path string) error {
	err := st.makeParent(path)
	if i := strings.LastIndexByte(path, '/'); errors.Is(err, zk.ErrNoNode) && i > 0 {
		if err := st.makeParents(path[:i]); err != nil {
			return err
		}
		err = st.makeParent(path)
	}
	if errors.Is(err, zk.ErrNodeExists) {
		err = nil
	}
	return refusal("create the parents of a lock", err)
}

// makeParent makes one container. Servers before 3.5 don't know containers, and even end the session that wants one.
// The store tries that only once.
func (st *store) makeParent(path string) error {
	if st.old.Load() {
		return errOld
	}
	_, _, err := query(st.s, write, func(c *zk.Conn) (string, error) { return c.CreateContainer(path, nil, zk.FlagContainer, st.acl) })
	if err != nil && strings.Contains(err.Error(), unimplemented) {
		st.old.Store(true)
		return errOld
	}
	return err
}

// unimplemented is what the library makes of a code that it has no error for.
const unimplemented = "unknown error: -6"

// find returns the names of the nodes of this entry that there are. Earlier requests for them have arrived by then:
// they came through the same connection, or through one that the leader takes nothing from anymore, and a sync brings
// the server up to the leader.
func (n *node) find() (names []string, err error) {
	s := n.st.s
	if _, _, err := query(s, read, func(c *zk.Conn) (string, error) { return c.Sync(n.dir) }); err != nil {
		return nil, refusal("bring a server up to date", err)
	}
	names, _, err = query(s, read, func(c *zk.Conn) ([]string, error) {
		names, _, err := c.Children(n.dir)
		return names, err
	})
	if errors.Is(err, zk.ErrNoNode) {
		return nil, nil
	}
	names = slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, n.guid) })
	return names, refusal("list the nodes of a lock", err)
}

// remove takes n out of line. It returns lock.ErrNotHeld if it was not there. If ctx ends first, the removal goes on.
func (n *node) remove(ctx context.Context) error {
	n.mu.Lock()
	r := n.leaving
	if r == nil {
		r = &errand{done: make(chan struct{})}
		n.leaving = r
		go n.leave(r)
	}
	n.mu.Unlock()
	return r.wait(ctx)
}

// leave deletes the node until that is sure. It ends before only when the session is closed, with which the node goes.
func (n *node) leave(r *errand) {
	s := n.st.s
	again := false // an earlier attempt may have done it
	for pause := 10 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		err := n.delete()
		switch {
		case errors.Is(err, lock.ErrNotHeld) && again:
			err = nil
			fallthrough
		case err == nil, errors.Is(err, lock.ErrNotHeld), errors.Is(err, lock.ErrRefused):
			n.left(r, err)
			return
		}
		again = true
		if !s.sleep(pause) {
			n.left(r, errClosed)
			return
		}
	}
}

func (n *node) left(r *errand, err error) {
	n.st.s.dismiss(n)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.path, n.doubt, n.leaving = "", false, nil
	r.err = err
	close(r.done)
}

// delete tries once.
func (n *node) delete() error {
	_ = n.settled(context.Background())
	n.mu.Lock()
	paths := []string{n.path}
	doubt := n.doubt
	n.mu.Unlock()
	if doubt {
		names, err := n.find()
		if err != nil {
			return err
		}
		paths = names
		for i := range paths {
			paths[i] = n.dir + "/" + paths[i]
		}
	}
	result := lock.ErrNotHeld
	for _, path := range paths {
		if path == "" {
			continue
		}
		_, _, err := query(n.st.s, write, func(c *zk.Conn) (struct{}, error) { return struct{}{}, c.Delete(path, -1) })
		switch {
		case err == nil:
			result = nil
			n.st.sweep(path)
		case !errors.Is(err, zk.ErrNoNode):
			return refusal("delete the node of a lock", err)
		}
	}
	return result
}

// sweep removes the parent of a node that is gone, if its counter has come far and it is empty. Otherwise the servers do, in time.
func (st *store) sweep(path string) {
	i := strings.LastIndexByte(path, '/')
	if m, ok := parse(path[i+1:]); ok && (m.sequence > spent || m.sequence < 0) {
		_, _, _ = query(st.s, write, func(c *zk.Conn) (struct{}, error) { return struct{}{}, c.Delete(path[:i], -1) })
	}
}
