package pubsub

import (
	"context"
	"errors"
	"net"
	"sync/atomic"

	"github.com/latchkey-go/latchkey/internal/reply"
	"github.com/redis/go-redis/v9"
)

// errEnded is what go-redis gets when it dials a second time.
var errEnded = errors.New("redisson: the pub/sub connection has ended")

// dedicated returns options like those given, for a client that makes one TCP connection, which is closed when ctx ends.
//
// go-redis makes that connection, handshake and all, and each write under the mutex of its PubSub, for as long as its
// timeouts allow and whatever becomes of a context. When it breaks, go-redis makes another one before it says so, and sends
// all subscriptions again in the order of a map. Here it can do neither: the end of ctx interrupts it at any point, which
// makes its timeouts needless, and another connection is another session.
//
// Hooks of the client that the options are of do not come along; its dialler, its credentials and its OnConnect do.
func dedicated(ctx context.Context, options *redis.Options) *redis.Options {
	o := reply.Lone(options)
	var dialled atomic.Bool
	dial := reply.Bounded(options.Dialer)
	o.Dialer = func(dialCtx context.Context, network, addr string) (net.Conn, error) {
		if dialled.Swap(true) {
			return nil, errEnded
		}
		conn, err := dial(dialCtx, network, addr)
		if err != nil {
			return nil, err
		}
		context.AfterFunc(ctx, func() { _ = conn.Close() })
		return conn, nil
	}
	o.ReadTimeout, o.WriteTimeout = -2, -2 // no deadlines
	return o
}
