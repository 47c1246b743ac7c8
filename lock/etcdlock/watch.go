package etcdlock

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/latchkey-go/latchkey/internal/clock"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/metadata"
)

// watch receives the events for a waiter.
type watch struct {
	begun   chan struct{} // closed when etcd has confirmed it
	changed chan struct{} // closed when it is time to look again
	stream  int64
}

// open starts a watch on a key, or with other options on more than that, of what comes after the revision. It ends with the event for
// which done is true, and for any other reason: the revision is compacted, the member has no leader, or ctx has ended.
//
// The client has one stream to one member for all watches with the same metadata. As long as that member says nothing, a watch does not
// even begin, so open does not wait for it; see replace.
func (s *store) open(ctx context.Context, key string, rev int64, done func(*clientv3.Event) bool, opts ...clientv3.OpOption) *watch {
	w := &watch{begun: make(chan struct{}), changed: make(chan struct{}), stream: s.stream.Load()}
	opts = append(opts, clientv3.WithRev(rev+1))
	go func() {
		defer close(w.changed)
		events := s.client.Watch(w.context(ctx), key, opts...)
		close(w.begun)
		for resp := range events {
			if slices.ContainsFunc(resp.Events, done) {
				return
			}
			if resp.Err() != nil && resp.CompactRevision == 0 { // as when the stream's token has ended
				s.replace(w)
			}
		}
		clock.Sleep(ctx, firstPause) // a watch that can't begin is not tried again at once
	}()
	return w
}

// context returns one with the life of ctx and none of its values, because the stream would keep those of the first watch.
func (w *watch) context(ctx context.Context) context.Context {
	alone, cancel := context.WithCancel(context.Background())
	context.AfterFunc(ctx, cancel)
	return metadata.AppendToOutgoingContext(clientv3.WithRequireLeader(alone), "latchkey-stream", strconv.FormatInt(w.stream, 10))
}

// replace has the next watches begin on a new stream, which in general leads to another member, because that of w is silent, or refuses.
func (s *store) replace(w *watch) { s.stream.CompareAndSwap(w.stream, w.stream+1) }

// watch returns a watch on the keys that are in the way of r.
func (s *store) watch(ctx context.Context, r *record, v *view, x verdict, limit int) (*watch, error) {
	if x.behind == "" {
		return s.watchPermits(ctx, r, v, limit)
	}
	return s.open(ctx, r.dir+x.behind, v.rev, func(*clientv3.Event) bool { return true }), nil
}

// watchPermits is for an entry that waits for a permit. Any of those ahead may be the one that leaves, so it hears of
// all that leave, and counts until there can be room.
func (s *store) watchPermits(ctx context.Context, r *record, v *view, limit int) (*watch, error) {
	ahead, err := s.ahead(ctx, r, v.rev)
	if err != nil {
		return nil, err
	}
	return s.open(ctx, r.dir, v.rev, func(e *clientv3.Event) bool {
		key := string(e.Kv.Key)
		_, left := ahead[key]
		delete(ahead, key)
		return key == r.key() || left && len(ahead) < limit
	}, clientv3.WithRange(r.end), clientv3.WithFilterPut()), nil
}

// ahead returns the keys that were ahead of r in the line at the revision. There are none to wait for if that is compacted.
func (s *store) ahead(ctx context.Context, r *record, rev int64) (map[string]struct{}, error) {
	var resp *clientv3.GetResponse
	_, err := s.ask(ctx, func(ctx context.Context) (err error) {
		resp, err = s.client.Get(ctx, r.dir, clientv3.WithRange(r.end), clientv3.WithKeysOnly(), clientv3.WithRev(rev),
			clientv3.WithMaxCreateRev(r.created-1))
		return err
	})
	keys := make(map[string]struct{})
	switch {
	case errors.Is(err, rpctypes.ErrCompacted): // the watch will end at once, for the same reason
		return keys, nil
	case err != nil:
		return nil, err
	}
	for _, kv := range resp.Kvs {
		if !strings.Contains(strings.TrimPrefix(string(kv.Key), r.dir), slash) {
			keys[string(kv.Key)] = struct{}{}
		}
	}
	return keys, nil
}
