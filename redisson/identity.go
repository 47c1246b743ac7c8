package redisson

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/latchkey-go/latchkey/redisson/internal/pubsub"
)

// Name has a client say who it is, for those who look at its locks: see [Identity] and [Client.Inspect]. While it holds or waits for
// something, it keeps a key of its own in Redis, latchkey_client:<id>, which it renews every third of the watchdog's timeout, and which ends with
// that timeout, or when the client is closed. Permits that [PermitExpirableSemaphore.Acquire] and
// [Semaphore.Acquire] have taken do not count, as the client does not know whether they were given back. The name must be UTF-8, of
// 1 to 512 bytes; a pod's name or a service's is a good one. By default, no client says anything, and asks Redis nothing for it.
func Name(name string) Option {
	return optionFunc(func(s *settings) { s.name, s.named = name, true })
}

// mostName bounds a name in bytes.
const mostName = 512

func (s *settings) checkName() error {
	if s.named && (s.name == "" || len(s.name) > mostName || !utf8.ValidString(s.name)) {
		return fmt.Errorf("redisson: the name of a client has %d bytes: want 1 to %d, of UTF-8", len(s.name), mostName)
	}
	return nil
}

// newCard returns what a client of this process says.
func newCard(name string) string {
	host, _ := os.Hostname() // or nothing
	c := Identity{Name: name, Host: host, PID: os.Getpid(), Since: time.Now().UTC()}
	if info, ok := debug.ReadBuildInfo(); ok {
		c.Version = info.Main.Version
	}
	text, _ := json.Marshal(c) // never fails
	return string(text)
}

// presence keeps the key with which a client says who it is, as long as that holds or waits for something.
type presence struct {
	c         *Client
	key, text string // no text: the client has no name
	alarm     *alarm // when to show it
	waiting   atomic.Int64
}

func newPresence(c *Client, text string) *presence {
	p := &presence{c: c, key: clientName(c.id), text: text}
	p.alarm = newAlarm(p.show)
	return p
}

// add notes that so many more calls wait, or with 0 that the client has got a lock. Who has nothing but a lock for a moment does not show itself.
func (p *presence) add(more int64) {
	if p.text != "" {
		p.waiting.Add(more)
		p.alarm.set(soonInterval)
	}
}

// show says who the client is, now and again as long as it holds or waits for something. What is shown ends by itself.
func (p *presence) show() {
	r := p.c.registry
	if r.begin() != nil {
		return
	}
	defer r.end()
	if p.waiting.Load() > 0 || r.busy() {
		p.alarm.set(r.timeout / 3)
		p.say(p.c.ctx, r.timeout)
	}
}

// say has Redis know for so long who the client is, if it has a name; with 0, as at a close, no more.
func (p *presence) say(ctx context.Context, life time.Duration) {
	if p.text == "" {
		return
	}
	p.c.road.AskSoon(ctx, call{Script: clientShow, Keys: []string{p.key}, Args: []any{p.text, millis(life)}})
}

// mostIdentities bounds how many are remembered during a search.
const mostIdentities = 10_000

// eachClient calls f with those that hold objects or wait for them, and where it is noted who they are.
func eachClient(objects []Object, f func(client string, who *Identity)) {
	for _, o := range objects {
		for i := range o.Holders {
			f(o.Holders[i].Client, &o.Holders[i].Who)
		}
		for i := range o.Queue {
			f(o.Queue[i].Client, &o.Queue[i].Who)
		}
	}
}

// learn finds out about those clients of objects that are not known yet. What can't be had is as good as none.
func (in *lookup) learn(objects []Object) {
	if len(in.who) > mostIdentities {
		clear(in.who)
	}
	var unknown []string
	eachClient(objects, func(client string, _ *Identity) {
		if _, known := in.who[client]; !known && client != "" {
			in.who[client] = Identity{}
			unknown = append(unknown, client)
		}
	})
	for _, ids := range pubsub.ByMaster(in.c.topology, unknown, clientName) {
		for ids := range slices.Chunk(ids, lookedTogether) {
			in.askWho(ids)
		}
	}
	eachClient(objects, func(client string, who *Identity) { *who = in.who[client] })
}

// askWho asks a master for what clients say.
func (in *lookup) askWho(ids []string) {
	args := make([]any, len(ids))
	for i, id := range ids {
		args[i] = clientName(id)
	}
	a := in.ask(call{Script: clientWho, Keys: []string{clientName(ids[0])}, Args: args})
	for i, said := range a.List {
		var who Identity
		if text, ok := said.(string); ok && i < len(ids) && json.Unmarshal([]byte(text), &who) == nil {
			in.who[ids[i]] = who
		}
	}
}
