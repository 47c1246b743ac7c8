package zklock

import (
	"context"
	"errors"
	"sync"

	"github.com/go-zookeeper/zk"
)

// watches has one watch of the library for each node, however many wait for it: the library can't take one back, so that waiters who
// come and go would leave theirs until the node is gone.
type watches struct {
	mu    sync.Mutex
	nodes map[string]*watch
}

// watch is one for a node.
type watch struct {
	set   chan struct{} // closed when the server has answered
	err   error         // then
	fired chan struct{} // closed when the node has changed or gone, or the watch is not good anymore
}

// watch returns a channel that is closed when the node at path changes or is deleted, which may be now, or the session ends.
func (s *Session) watch(ctx context.Context, path string) (<-chan struct{}, error) {
	s.watches.mu.Lock()
	w := s.watches.nodes[path]
	if w == nil {
		w = &watch{set: make(chan struct{}), fired: make(chan struct{})}
		if s.watches.nodes == nil {
			s.watches.nodes = make(map[string]*watch)
		}
		s.watches.nodes[path] = w
		go s.serve(path, w)
	}
	s.watches.mu.Unlock()
	select {
	case <-w.set:
		return w.fired, w.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// serve asks for a watch and waits for its event. The library answers each watch, at the latest when the session is closed.
func (s *Session) serve(path string, w *watch) {
	events, _, err := query(s, read, func(c *zk.Conn) (<-chan zk.Event, error) {
		_, _, events, err := c.GetW(path) // unlike Exists, it leaves no watch where there is no node
		return events, err
	})
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		w.err = err
	}
	close(w.set)
	if events != nil {
		<-events
	}
	s.watches.mu.Lock()
	delete(s.watches.nodes, path)
	s.watches.mu.Unlock()
	close(w.fired)
}
