package reply

import (
	"context"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// Fresh tells connections that lead to the wrong server from servers that are the wrong ones. A demoted master can keep the connections
// that it has, while the address leads to the new one. go-redis drops a connection with an answer such as READONLY, so whoever asks again
// comes through, one answer for each old connection; but not before a new master is there.
type Fresh struct {
	client  *redis.Client
	options redis.Options // of one with a single connection

	mu     sync.Mutex
	asked  time.Time     // when a fresh connection was last asked
	wrong  bool          // it led to the wrong server, too
	asking chan struct{} // closed when that is known; nil if nobody asks
}

// Sender is a client or a connection.
type Sender interface {
	Process(ctx context.Context, cmd redis.Cmder) error
	Pipeline() redis.Pipeliner
}

// freshFor is how long it counts that a fresh connection led to the right server: older ones are gone by then.
const freshFor = 100 * time.Millisecond

// NewFresh returns one for a client of one server, and nil for others: there each answer names the right server, or the map does. It comes
// before the client's first question: go-redis writes to options then.
func NewFresh(rdb redis.UniversalClient) *Fresh {
	client, ok := rdb.(*redis.Client)
	if !ok {
		return nil
	}
	o := Lone(client.Options())
	o.DialerRetries, o.ContextTimeoutEnabled = 1, true
	return &Fresh{client: client, options: *o}
}

// Lone returns options like those given, for a client with a single connection that repeats nothing.
func Lone(options *redis.Options) *redis.Options {
	o := *options
	o.PoolSize, o.MinIdleConns, o.MaxIdleConns, o.MaxActiveConns, o.PipelinePoolSize = 1, 0, 0, 0, -1
	o.MaxRetries = -1
	o.ClientSideCache, o.ClientSideCacheConfig, o.PushNotificationProcessor = nil, nil, nil
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return &o
}

// Repeat is called with an answer of the wrong server to a question that was sent then. It has ask repeat the question at once, over a
// connection that nobody has used, and over those of the client while such a one leads to the right server. It returns once ask reports
// that the answer was not of the wrong server, or when fresh connections lead there, too: then a pause makes sense.
func (f *Fresh) Repeat(ctx context.Context, sent time.Time, ask func(Sender) (wrong bool)) {
	for ctx.Err() == nil {
		f.mu.Lock()
		asking, wrong, right := f.asking, f.wrong && f.asked.After(sent), !f.wrong && time.Since(f.asked) < freshFor
		if asking == nil && !wrong && !right {
			f.asking = make(chan struct{})
		}
		f.mu.Unlock()
		switch {
		case asking != nil: // by somebody else
			by, _ := ctx.Deadline()
			select {
			case <-asking:
			case <-ctx.Done():
			case <-time.After(time.Until(by)):
				return
			}
		case right:
			if sent = time.Now(); !f.askOld(ctx, ask) {
				return
			}
		default:
			if !wrong {
				f.askFresh(ask)
			}
			return
		}
	}
}

// askOld asks over a connection of the pool, which is closed if it leads to the wrong server: go-redis itself does so for READONLY only.
func (f *Fresh) askOld(ctx context.Context, ask func(Sender) (wrong bool)) (wrong bool) {
	conn := f.client.Conn()
	defer conn.Close()
	if wrong = ask(conn); wrong {
		_ = conn.Process(ctx, redis.NewCmd(ctx, "quit"))
	}
	return wrong
}

func (f *Fresh) askFresh(ask func(Sender) (wrong bool)) {
	o := f.options
	client := redis.NewClient(&o)
	wrong := ask(client)
	_ = client.Close()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked, f.wrong = time.Now(), wrong
	close(f.asking)
	f.asking = nil
}
