package reply

import (
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// Fresh tells connections that lead to the wrong server from servers that are the wrong ones. A demoted master can keep the connections
// that it has, while the address leads to the new one. go-redis drops a connection with an answer such as READONLY, so whoever asks again
// comes through, one answer for each old connection; but not before a new master is there.
type Fresh struct {
	options redis.Options

	mu     sync.Mutex
	asked  time.Time     // when a fresh connection was last asked
	wrong  bool          // it led to the wrong server, too
	asking chan struct{} // closed when that is known; nil if nobody asks
}

// A Verdict says what to do after an answer of the wrong server.
type Verdict int

// The verdicts of Fresh.
const (
	Answered Verdict = iota // the fresh connection has answered
	Again                   // the connection was an old one: ask again at once
	Pause                   // fresh connections lead there, too
)

// freshFor is how long it counts that a fresh connection led to the right server: older ones are gone by then.
const freshFor = 100 * time.Millisecond

// NewFresh returns one for the server of a client. It comes before the client's first question: go-redis writes to options then.
func NewFresh(client *redis.Client) *Fresh {
	o := *client.Options()
	o.PoolSize, o.MinIdleConns, o.MaxIdleConns, o.MaxActiveConns, o.PipelinePoolSize = 1, 0, 0, 0, -1
	o.MaxRetries, o.DialerRetries, o.ContextTimeoutEnabled = -1, 1, true
	o.ClientSideCache, o.ClientSideCacheConfig, o.PushNotificationProcessor = nil, nil, nil
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return &Fresh{options: o}
}

// After is called with an answer of the wrong server to a question that was sent then. It has ask repeat the question over a connection that
// nobody has used, unless somebody else does so, for whom it waits until by. ask reports whether that led to the wrong server, too.
func (f *Fresh) After(sent, by time.Time, ask func(*redis.Client) (wrong bool)) Verdict {
	for {
		f.mu.Lock()
		asking := f.asking
		switch {
		case asking != nil:
		case f.wrong && f.asked.After(sent):
			f.mu.Unlock()
			return Pause
		case !f.wrong && time.Since(f.asked) < freshFor:
			f.mu.Unlock()
			return Again
		default:
			f.asking = make(chan struct{})
			f.mu.Unlock()
			return f.ask(ask)
		}
		f.mu.Unlock()
		select {
		case <-asking:
		case <-time.After(time.Until(by)):
			return Pause
		}
	}
}

func (f *Fresh) ask(ask func(*redis.Client) (wrong bool)) Verdict {
	o := f.options
	client := redis.NewClient(&o)
	wrong := ask(client)
	_ = client.Close()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked, f.wrong = time.Now(), wrong
	close(f.asking)
	f.asking = nil
	return Answered
}
