package redisson

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"runtime/debug"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson/internal/pubsub"
	"go.opentelemetry.io/otel/trace"
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

// newCard returns the text that a client of this process shows.
func newCard(s *settings) string {
	if !s.named {
		return ""
	}
	host, _ := os.Hostname() // or nothing
	c := Identity{Name: s.name, Host: host, PID: os.Getpid(), Since: time.Now().UTC(), Watchdog: s.watchdogTimeout, Describes: s.describes}
	if info, ok := debug.ReadBuildInfo(); ok {
		c.Version = info.Main.Version
	}
	text, _ := json.Marshal(c) // never fails
	return string(text)
}

// cardField is the field with the Identity in a client's own key. The others are ids of holders, with what is said of their holds.
const cardField = "who"

// presence keeps the key that shows who the client is and, with the option Describe, its holds. The key exists while
// the client holds something or waits.
type presence struct {
	c         *Client
	key, text string   // no text: the client has no name
	alarm     alarm    // when to show it
	waits     sync.Map // the waiters

	mu    sync.Mutex // of who says
	shown map[string]string
	said  time.Time
}

func newPresence(c *Client) *presence {
	p := &presence{c: c, key: clientName(c.id), text: newCard(&c.settings)}
	p.alarm.f = p.show
	return p
}

// held notes that the client has got a lock. A client that has nothing but a lock for a moment does not show itself.
func (p *presence) held() {
	if p.text != "" {
		p.alarm.set(soonInterval)
	}
}

// begin notes that a call waits, and end that it does not any more.
func (p *presence) begin(w *waiter) {
	if p.text != "" {
		p.waits.Store(w, nil)
		p.held()
	}
}

func (p *presence) end(w *waiter) { p.waits.Delete(w) }

// show writes who the client is, now and again as long as it holds or waits for something. The record ends by itself.
func (p *presence) show() {
	r := p.c.registry
	if r.begin() != nil {
		return
	}
	defer r.end()
	busy := r.busy()
	p.waits.Range(func(any, any) bool { busy = true; return false })
	if busy && p.mu.TryLock() {
		defer p.mu.Unlock()
		p.alarm.set(p.say(r.timeout))
	}
}

// say writes the key for so long, unless it is there. It returns when to write it again.
func (p *presence) say(life time.Duration) (pause time.Duration) {
	pause = life / 3
	fields := map[string]string{cardField: p.text}
	if p.c.describes && p.describe(fields) {
		pause = min(pause, describeInterval)
	}
	if time.Since(p.said) < life/3-soonInterval && maps.Equal(fields, p.shown) {
		return pause
	}
	args := []any{millis(life)}
	for name, text := range fields {
		args = append(args, name, text)
	}
	p.shown, p.said = fields, time.Now()
	if a := p.c.road.AskSoon(p.c.ctx, call{Script: clientShow, Keys: []string{p.key}, Args: args}); a.Err != nil {
		p.shown, pause = nil, min(pause, describeInterval)
	}
	return pause
}

// leave removes the key.
func (p *presence) leave(ctx context.Context) {
	if p.text != "" {
		p.c.road.AskSoon(ctx, call{Script: clientShow, Keys: []string{p.key}, Args: []any{0}})
	}
}

// mostIdentities bounds how many are remembered during a search.
const mostIdentities = 10_000

// eachClient calls f with the client of each holder and waiter of the objects, and with the place for its Identity. A
// waiter has no holder.
func eachClient(objects []Object, f func(client *string, who *Identity, h *Holder)) {
	for _, o := range objects {
		for i := range o.Holders {
			f(&o.Holders[i].Client, &o.Holders[i].Who, &o.Holders[i])
		}
		for i := range o.Queue {
			f(&o.Queue[i].Client, &o.Queue[i].Who, nil)
		}
	}
}

// learn finds out about those clients of objects that are not known yet, and about holders that they describe. A client
// without a record counts as one without a name.
func (in *lookup) learn(objects []Object) {
	if len(in.who) > mostIdentities {
		clear(in.who)
	}
	in.who[""] = Identity{} // nobody to ask for
	unknown := map[string][]*Holder{}
	eachClient(objects, func(client *string, _ *Identity, h *Holder) {
		switch who, known := in.who[*client]; {
		case h != nil && (!known || who.Describes):
			unknown[*client] = append(unknown[*client], h)
		case !known && unknown[*client] == nil:
			unknown[*client] = nil // a key of the map
		}
	})
	for _, ids := range pubsub.ByMaster(in.c.topology, slices.Sorted(maps.Keys(unknown)), clientName) {
		for ids := range slices.Chunk(ids, lookedTogether) {
			in.askWho(ids, unknown)
		}
	}
	eachClient(objects, func(client *string, who *Identity, h *Holder) {
		if *who = in.who[*client]; h != nil && len(h.ID) == 2*permitSize && who.Name == "" {
			*client = "" // which nobody but the client itself can confirm
		}
	})
}

// askWho reads the clients' keys from a master, for their Identities and holders.
func (in *lookup) askWho(ids []string, of map[string][]*Holder) {
	var args []any
	for _, id := range ids {
		in.who[id] = Identity{}
		args = append(args, clientName(id), len(of[id]))
		for _, h := range of[id] {
			args = append(args, h.ID)
		}
	}
	a, now := in.ask(call{Script: clientWho, Keys: []string{clientName(ids[0])}, Args: args}), time.Now()
	for i, said := range a.List {
		texts, _ := said.([]any)
		if i >= len(ids) || len(texts) != 2+len(of[ids[i]]) {
			return
		}
		var who Identity
		if left, _ := texts[0].(int64); !readJSON(texts[1], &who) {
			who = Identity{}
		} else if left > 0 {
			who.Heard = now.Add(duration(left) - who.Watchdog)
		}
		in.who[ids[i]] = who
		for n, h := range of[ids[i]] {
			about := new(About)
			if !readJSON(texts[2+n], about) {
				continue
			}
			if h.About = about; about.Renews && h.Lease > 0 && h.Lease <= who.Watchdog {
				h.Renewed = now.Add(h.Lease - who.Watchdog)
			}
		}
	}
}

// readJSON decodes text into to, and reports whether it could.
func readJSON(text any, to any) bool {
	s, _ := text.(string)
	return json.Unmarshal([]byte(s), to) == nil
}

// Describe has a client with a [Name] say more for those who look at its locks: since when it holds each and what for, see [About], for locks of all
// kinds, and the permits of lock.Permit. It costs no command a lock, but one a second at most, as long as what the client holds for longer than a
// moment changes, with the newest 1,000 holds. Guards' names, ids of traces and keys get into Redis by it.
func Describe() Option {
	return optionFunc(func(s *settings) { s.describes = true })
}

const (
	describeInterval = time.Second
	// mostDescribed is how many holds are described, and mostWaits how many keys of one.
	mostDescribed = 1000
	mostWaits     = 10
)

// described is a hold, with those of its fields that may change.
type described struct {
	*hold
	renews bool
}

// newest returns the newest holds, the first of each holder, and whether there are more.
func (s *registry) newest(most int) (all []described, more bool) {
	s.mu.Lock()
	for ho := range s.holders.all() {
		if len(ho.holds) > 0 {
			all = append(all, described{ho.holds[0], ho.renewed()})
		}
	}
	s.unlock()
	if more = len(all) > most; more {
		slices.SortFunc(all, func(a, b described) int { return int(b.since - a.since) })
		all = all[:most]
	}
	return all, more
}

// publicID returns the holder's id as [Holder] has it.
func (ho *holder) publicID() string {
	if ho.kind == lock.Permit {
		return hex.EncodeToString([]byte(ho.id))
	}
	return ho.id
}

// describe adds the descriptions of holds, and reports whether there are few enough to look at them often.
func (p *presence) describe(fields map[string]string) (often bool) {
	waits := map[string][]string{} // by the holder above
	p.waits.Range(func(one, _ any) bool {
		w := one.(*waiter)
		for a := range lock.Ancestors(w.ctx) {
			if h, ok := a.(interface{ inner() *hold }); ok {
				id := h.inner().holder.publicID()
				if keys := waits[id]; len(keys) < mostWaits && !slices.Contains(keys, w.stay.name) {
					waits[id] = append(keys, w.stay.name)
				}
			}
		}
		return true
	})
	all, more := p.c.registry.newest(mostDescribed)
	for _, h := range all {
		about := About{Since: h.since.time().Round(time.Millisecond).UTC(), For: h.by, Renews: h.renews, Waits: waits[h.holder.publicID()]}
		if t := trace.SpanContextFromContext(&h.ctx).TraceID(); t.IsValid() {
			about.Trace = t.String()
		}
		slices.Sort(about.Waits)
		text, _ := json.Marshal(about) // never fails
		fields[h.holder.publicID()] = string(text)
	}
	return !more
}
