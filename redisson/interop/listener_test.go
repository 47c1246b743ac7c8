package interop

import (
	"context"
	"slices"

	"github.com/redis/go-redis/v9"
)

// messages listens to a channel as the other side does.
func (w *world) messages(channel string) *listener {
	w.t.Helper()
	return w.listen(&listener{w: w, channel: channel}, channel)
}

// everything listens to all messages about any lock; in a cluster, which has no patterns, to the channels alone.
func (w *world) everything(channels ...string) *listener {
	w.t.Helper()
	if w.on.cluster {
		return w.listen(&listener{w: w, channel: channels[0], many: true}, channels...)
	}
	const channel = "redisson"
	return w.listen(&listener{w: w, channel: channel, many: true, pattern: true}, channel+"*")
}

func (w *world) listen(l *listener, channels ...string) *listener {
	w.t.Helper()
	switch {
	case w.on.sharded():
		l.ps = w.rdb.SSubscribe(context.Background(), channels...)
	case l.pattern:
		l.ps = w.rdb.PSubscribe(context.Background(), channels...)
	default:
		l.ps = w.rdb.Subscribe(context.Background(), channels...)
	}
	w.t.Cleanup(func() { _ = l.ps.Close() })
	for range channels {
		must[any](w.t)(l.ps.Receive(context.Background()))
	}
	return l
}

type listener struct {
	w       *world
	channel string
	ps      *redis.PubSub
	many    bool // channels, so that what is expected is "channel payload"
	pattern bool
}

// close stops listening.
func (l *listener) close() { _ = l.ps.Close() }

// expect checks the payloads of all messages since the last expect.
func (l *listener) expect(payloads ...string) {
	l.w.t.Helper()
	const mark = "9" // a number, for the sake of other listeners, that Redisson ignores
	publish := l.w.rdb.Publish
	if l.w.on.sharded() {
		publish = l.w.rdb.SPublish
	}
	must[int64](l.w.t)(publish(context.Background(), l.channel, mark).Result())
	var got []string
	for m := range l.ps.Channel() {
		if m.Payload == mark {
			break
		}
		if l.many {
			m.Payload = m.Channel + " " + m.Payload
		}
		got = append(got, m.Payload)
	}
	if !slices.Equal(got, payloads) {
		l.w.t.Errorf("published on %s: %q, want %q", l.channel, got, payloads)
	}
}
