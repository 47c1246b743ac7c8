package zklock

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/leases"
)

// store is a leases.Store whose entries are nodes in line.
type store struct {
	s       *Session
	root    string // without a slash at its end
	acl     []zk.ACL
	data    []byte // of the nodes, for those who look at them
	timeout time.Duration
	old     atomic.Bool // whether the servers know no containers
}

var (
	_ leases.Queue      = (*store)(nil)
	_ leases.Downgrader = (*store)(nil)
	_ leases.Peeker     = (*store)(nil)
)

// settle is how long a line of another family may take to be gone. Its nodes may be those of calls that are about to be refused.
const settle = 200 * time.Millisecond

// Take puts e in line, looks whether it is the first, and takes it out again if not.
func (st *store) Take(ctx context.Context, e *leases.Entry, _ time.Duration) (leases.Grant, error) {
	start := time.Now()
	n := st.node(e)
	if err := n.ensure(ctx); err != nil {
		return leases.Grant{}, err
	}
	v, err := n.look(ctx)
	if wrong := (*lock.KindError)(nil); errors.As(err, &wrong) && v.wait(ctx, st.s, settle) == nil {
		v, err = n.look(ctx)
	}
	switch {
	case err == nil && v.nearest == "":
		return n.grant(ctx, v, start)
	case err == nil:
		err = lock.ErrBusy
	}
	if gone := n.remove(ctx); gone != nil && !errors.Is(gone, lock.ErrNotHeld) {
		return leases.Grant{}, gone
	}
	return leases.Grant{}, err
}

// Enter puts e in line and waits until it is the first.
func (st *store) Enter(ctx context.Context, e *leases.Entry, _ time.Duration) (leases.Grant, error) {
	n := st.node(e)
	if err := n.ensure(ctx); err != nil {
		return leases.Grant{}, err
	}
	e.Answered()
	refused := false // once for another family
	for {
		asked := time.Now()
		v, err := n.look(ctx)
		_, wrong := errors.AsType[*lock.KindError](err)
		switch {
		case err == nil && v.nearest == "":
			g, err := n.grant(ctx, v, asked)
			g.Since = asked
			return g, err
		case err == nil:
			err = v.wait(ctx, st.s, st.patience())
		case wrong && !refused:
			err = v.wait(ctx, st.s, settle)
		}
		refused = wrong
		if err != nil && n.over(ctx, err) {
			return leases.Grant{}, err
		}
	}
}

// patience is after what time a waiter looks again without a message.
func (st *store) patience() time.Duration {
	_, _, timeout := st.s.state()
	return timeout
}

// over reports whether a waiter can't stay in line after err. While the node is there, and servers are heard, it can.
func (n *node) over(ctx context.Context, err error) bool {
	_, wrong := errors.AsType[*lock.KindError](err)
	select {
	case <-n.gone:
		return true
	default:
	}
	return wrong || ctx.Err() != nil || errors.Is(err, lock.ErrRefused) || errors.Is(err, errSpent) || errors.Is(err, errGone) ||
		n.st.s.silent() > n.st.timeout || !n.st.s.sleep(10*time.Millisecond)
}

// view is a line as one of its nodes sees it.
type view struct {
	node    *node
	nearest string // the path of the node that it waits for; empty if there is none
	token   int64  // its own
}

// look asks who is in line before n. Beside a *lock.KindError, it returns who is the first.
func (n *node) look(ctx context.Context) (view, error) {
	v := view{node: n}
	n.mu.Lock()
	path, session := n.path, n.session
	n.mu.Unlock()
	if path == "" {
		return v, errExpired
	}
	token := n.czxid(ctx, path)
	children, id, err := ask(ctx, n.st.s, read, func(c *zk.Conn) ([]string, error) {
		names, _, err := c.Children(n.dir)
		return names, err
	})
	switch {
	case err == nil && id != session:
		return v, errExpired
	case err == nil && !slices.Contains(children, path[len(n.dir)+1:]), errors.Is(err, zk.ErrNoNode):
		return v, errGone
	case err != nil:
		return v, refusal("list the nodes of a lock", err)
	}
	line, err := members(children)
	if err != nil {
		return v, err
	}
	own, _ := parse(path[len(n.dir)+1:])
	nearest, err := ahead(line, own)
	if nearest != nil {
		v.nearest = n.dir + "/" + nearest.name
	}
	if err != nil || nearest != nil || token == nil {
		return v, err
	}
	v.token, err = token()
	return v, err
}

// czxid asks for the number of the write that has made the node, while another question is on its way: that is the fencing token. All
// writes to ZooKeeper are counted, so it is greater than that of every node before, also if the parent was deleted in between. Each
// kind that a Fenced lock may re-enter has one.
func (n *node) czxid(ctx context.Context, path string) func() (int64, error) {
	if n.entry.Kind.Family() != lock.Exclusive {
		return nil
	}
	var stat *zk.Stat
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		stat, _, err = ask(ctx, n.st.s, read, func(c *zk.Conn) (*zk.Stat, error) { _, stat, err := c.Get(path); return stat, err })
	}()
	return func() (int64, error) {
		<-done
		if err != nil {
			return 0, refusal("ask for the token of a lock", err)
		}
		return stat.Czxid, nil
	}
}

// wait returns when it is worth to look again: what v waits for has changed, or d is over, or the node's session.
func (v view) wait(ctx context.Context, s *Session, d time.Duration) error {
	changed, err := s.watch(ctx, v.nearest)
	if err != nil {
		return refusal("watch the node before one's own", err)
	}
	for end := time.Now().Add(d); ; {
		pause := min(time.Until(end), v.node.st.timeout)
		timer := time.NewTimer(pause)
		select {
		case <-changed:
		case <-timer.C:
			if s.silent() > v.node.st.timeout {
				return errSilent
			}
			if time.Now().Before(end) {
				continue
			}
		case <-v.node.gone:
			return errExpired
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
		timer.Stop()
		return err
	}
}

// grant makes a Grant of a view from the front of the line. Its lease begins at since, and is that of the session,
// whatever the request: a node has none of its own.
func (n *node) grant(ctx context.Context, v view, since time.Time) (leases.Grant, error) {
	until, err := n.confirmed(ctx)
	return leases.Grant{Lease: lease(since, until), Token: v.token}, err
}

// lease is how long a node lasts from since on if its session lasts until then. Nothing at all would mean something else.
func lease(since, until time.Time) time.Duration { return max(until.Sub(since), 1) }

// confirmed returns until when the session of n can't have expired.
func (n *node) confirmed(ctx context.Context) (time.Time, error) {
	n.mu.Lock()
	session := n.session
	n.mu.Unlock()
	return n.st.s.confirmed(ctx, session)
}

// Extend asks whether the node is there. That the session is, is confirmed all the time, for all nodes at once. ZooKeeper has no lease of
// a single node: the Locker frees those of a shorter one.
func (st *store) Extend(ctx context.Context, e *leases.Entry, _ time.Duration) (time.Duration, error) {
	start := time.Now()
	n := st.node(e)
	if err := n.settled(ctx); err != nil {
		return 0, err
	}
	n.mu.Lock()
	path, session, watched := n.path, n.session, n.watched
	n.watched = path != ""
	n.mu.Unlock()
	if path == "" {
		return 0, lock.ErrNotHeld
	}
	there, id, err := ask(ctx, st.s, read, func(c *zk.Conn) (bool, error) { there, _, err := c.Exists(path); return there, err })
	switch {
	case err != nil:
		return 0, refusal("ask for the node of a lock", err)
	case !there || id != session:
		return 0, lock.ErrNotHeld
	}
	if !watched {
		go n.guard(path)
	}
	until, err := n.confirmed(ctx)
	if errors.Is(err, errExpired) {
		return 0, lock.ErrNotHeld
	}
	return lease(start, until), err
}

// guard notifies the holder when somebody deletes the node at path. It does so from the first renewal on: most locks
// don't last so long.
func (n *node) guard(path string) {
	s := n.st.s
	for {
		changed, err := s.watch(context.Background(), path)
		if err != nil {
			return // the next renewal finds out
		}
		<-changed
		if !n.at(path) {
			return
		}
		there, _, err := query(s, read, func(c *zk.Conn) (bool, error) { there, _, err := c.Exists(path); return there, err })
		switch {
		case err == nil && !there && n.at(path):
			n.entry.Lost(errDeleted)
			return
		case !s.sleep(10 * time.Millisecond):
			return
		}
	}
}

// at reports whether n is the node at path, and we are not about to delete or replace it.
func (n *node) at(path string) bool {
	_ = n.settled(context.Background())
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.path == path && n.leaving == nil
}

// Free takes e out of line. With a keep, it stays until the Locker calls again, or the session ends.
func (st *store) Free(ctx context.Context, e *leases.Entry, keep time.Duration) error {
	if keep > 0 {
		_, err := st.Extend(ctx, e, keep)
		return err
	}
	return st.node(e).remove(ctx)
}

// Downgrade replaces the node of a writer by one of a reader with the same number, both in one step, so that it keeps its place: the
// writers behind it wait on, and the readers go in. Curator does the same in two steps.
func (st *store) Downgrade(ctx context.Context, e *leases.Entry) error {
	n := st.node(e)
	n.mu.Lock()
	old := n.path
	n.mu.Unlock()
	i := strings.LastIndex(old, markWrite)
	if i < 0 {
		return nil // a reader already, or gone
	}
	path := old[:i] + markRead + old[i+len(markWrite):]
	r := &errand{done: make(chan struct{})}
	n.mu.Lock()
	n.making = r
	n.mu.Unlock()
	go func() {
		err := n.replace(old, path)
		n.mu.Lock()
		defer n.mu.Unlock()
		if err == nil && n.path == old { // the session has not ended
			n.path, n.watched = path, false
		}
		n.making, r.err = nil, err
		close(r.done)
	}()
	return r.wait(ctx)
}

// replace has one node come in the place of another one, until that is sure or the session has ended.
func (n *node) replace(old, path string) error {
	st := n.st
	for {
		_, _, err := query(st.s, write, func(c *zk.Conn) ([]zk.MultiResponse, error) {
			return c.Multi(&zk.CreateRequest{Path: path, Data: st.data, Acl: st.acl, Flags: zk.FlagEphemeral},
				&zk.DeleteRequest{Path: old, Version: -1})
		})
		select {
		case <-n.gone:
			return errExpired
		default:
		}
		switch {
		case errors.Is(err, zk.ErrNodeExists): // an earlier attempt did it
			return nil
		case heard(err), !st.s.sleep(10 * time.Millisecond):
			return refusal("make a writer a reader", err)
		}
	}
}

// Peek looks at the line without joining it.
func (st *store) Peek(ctx context.Context, e *leases.Entry) error {
	children, _, err := ask(ctx, st.s, read, func(c *zk.Conn) ([]string, error) {
		names, _, err := c.Children(dir(st.root, e.Key))
		return names, err
	})
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	if err != nil {
		return refusal("list the nodes of a lock", err)
	}
	line, err := members(children)
	if err != nil {
		return err
	}
	nearest, err := ahead(line, member{kind: e.Kind, sequence: lastSequence})
	if err == nil && nearest != nil {
		err = lock.ErrBusy
	}
	return err
}
