// Package keyname reads the names that Redisson and Latchkey give to keys and channels in Redis: redisson/WIRE.md has the rules.
package keyname

import (
	"regexp"
	"strings"
)

// Meaning is one thing that a name in Redis can be.
type Meaning struct {
	// What says it in words.
	What string `json:"what"`
	// Of are the names of the object that it belongs to, the likeliest first: a name in braces can have had them itself, or got
	// them from the rule.
	Of []string `json:"-"`
	// Channel says that it is no key.
	Channel bool `json:"channel"`
	// Type is the answer of TYPE for a key.
	Type string `json:"type,omitempty"`
	// Client and Number are of a holder's id, or of a client alone.
	Client string `json:"client,omitempty"`
	Number string `json:"number,omitempty"`
	// Ends says whether and how the key goes away.
	Ends string `json:"ends,omitempty"`
}

// rule is one way to make a name. The part "of" of its pattern holds the object's name, "client" and "number" a holder's id.
type rule struct {
	pattern *regexp.Regexp
	Meaning
}

func prefixed(prefix, tail string) *regexp.Regexp {
	return regexp.MustCompile(`(?s)^` + prefix + `:(?P<of>.*\{.*)` + tail + `$`)
}

func suffixed(suffix string) *regexp.Regexp {
	return regexp.MustCompile(`(?s)^(?P<of>.*\{.*):` + suffix + `$`)
}

// The two parts of a holder's id.
const (
	uuid   = `[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`
	client = `(?P<client>` + uuid + `)`
	number = `(?P<number>[0-9]+)`
)

// rules are in order: the first ones say more.
var rules = []rule{
	{prefixed("redisson_lock_queue", ""), Meaning{What: "the waiters of a fair lock, in order", Type: "list", Ends: "with the last waiter; of dead ones, with their deadlines"}},
	{prefixed("redisson_lock_timeout", ""), Meaning{What: "the deadlines of the waiters of a fair lock", Type: "zset", Ends: "with the last waiter"}},
	{prefixed("redisson_lock_token", ""), Meaning{What: "the last token of a fenced lock", Type: "string", Ends: "never, unless programs set FencingTokenTTL"}},
	{prefixed("redisson_unlock_latch", ":[0-9a-f]{32}"), Meaning{What: "the result of one unlock of Redisson, so that it can be repeated", Type: "string", Ends: "after 20s"}},
	{prefixed("latchkey_receipt", ":"+client+":"+number), Meaning{What: "the result of one change of a number, or of one forced release, so that it can be repeated; the number is a slot", Type: "string", Ends: "by itself, after two minutes or more"}},
	{prefixed("latchkey_permits", ""), Meaning{What: "mark of a semaphore that guards with a limit have made", Type: "string", Ends: "with the last permit"}},
	{prefixed("latchkey_wake", ""), Meaning{What: "the clients that wait for a plain or fenced lock or a permit, in order", Type: "zset", Ends: "with the last waiter, or by itself"}},
	{prefixed("latchkey_newest", ""), Meaning{What: "the client with the newest of the calls of busy=replace; also their channel", Type: "string", Ends: "by itself, after two minutes or more"}},
	{regexp.MustCompile(`^latchkey_client:` + client + `$`), Meaning{What: "who a client is, while it holds or waits; also the channel on which it is told of locks that are freed by hand", Ends: "with the watchdog's timeout after the client"}},
	{prefixed("redisson_lock__channel", ":"+client+":"+number), Meaning{What: "where the first waiter of a fair lock, or a client that waits for a plain or fenced one, is notified", Channel: true}},
	{prefixed("redisson_lock__channel", ""), Meaning{What: "where the end of a plain or fenced lock is announced", Channel: true}},
	{prefixed("redisson_rwlock", ""), Meaning{What: "where the end of reading (0) and of writing (1) is announced", Channel: true}},
	{prefixed("redisson_sc", ":"+client+":"+number), Meaning{What: "where a client that waits for a permit is notified; the number is the limit", Channel: true}},
	{prefixed("redisson_sc", ""), Meaning{What: "where free permits of a semaphore are announced", Channel: true}},
	{regexp.MustCompile(`(?s)^redisson_countdownlatch__channel__\{(?P<name>.*)\}$`), Meaning{What: "where the end of a count-down latch (0) is announced", Channel: true}},
	{suffixed(client + ":" + number + ":rwlock_timeout:[0-9]+"), Meaning{What: "the lease of one reader of a read/write lock", Type: "string", Ends: "with that lease"}},
	{suffixed("timeout"), Meaning{What: "the taken permits of a semaphore whose permits expire", Type: "zset", Ends: "with the semaphore"}},
	{suffixed("rate"), Meaning{What: "the rate limiter of guards with a rate", Type: "hash", Ends: "by itself, an interval after the last call"}},
	{suffixed("value:" + client), Meaning{What: "what is left of the rate of one client", Type: "string", Ends: "with the rate limiter"}},
	{suffixed("permits:" + client), Meaning{What: "what one client has taken of its rate", Type: "zset", Ends: "with the rate limiter"}},
	{suffixed("value"), Meaning{What: "what is left of the rate of all clients", Type: "string", Ends: "with the rate limiter"}},
	{suffixed("permits"), Meaning{What: "what all clients have taken of the rate", Type: "zset", Ends: "with the rate limiter"}},
	{regexp.MustCompile(`^` + client + `:` + number + `(:write)?$`), Meaning{What: "no key but a holder: the field of a lock's hash, or a waiter in a queue; with :write it writes"}},
	{regexp.MustCompile(`^` + client + `$`), Meaning{What: "no key but a client, the first part of the ids of its holders"}},
}

// certain are names that nobody gives to a lock.
var certain = regexp.MustCompile(`^(redisson_|latchkey_|` + uuid + `)`)

// Decode returns what a name can be: what a rule makes it, or the main key of an object, or perhaps both.
func Decode(name string) []Meaning {
	var all []Meaning
	for _, r := range rules {
		m, ok := r.read(name)
		if !ok {
			continue
		}
		if all = append(all, m); certain.MatchString(name) {
			return all
		}
		break // those that follow are less exact readings of the same
	}
	return append(all, Meaning{What: "the main key of an object of that name, if it is one: a hash is a lock or a rate limiter, a number a semaphore or a latch",
		Of: []string{name}, Ends: "a lock with its lease"})
}

func (r rule) read(name string) (Meaning, bool) {
	found := r.pattern.FindStringSubmatch(name)
	if found == nil {
		return Meaning{}, false
	}
	m := r.Meaning
	for i, part := range r.pattern.SubexpNames() {
		switch part {
		case "of":
			m.Of = origins(found[i])
		case "name":
			m.Of = []string{found[i]}
		case "client":
			m.Client = found[i]
		case "number":
			m.Number = found[i]
		}
	}
	return m, true
}

// origins are the names that become text by Redisson's rule, which adds braces to a name without an opening one.
func origins(text string) []string {
	if inner, ok := strings.CutPrefix(text, "{"); ok {
		if inner, ok = strings.CutSuffix(inner, "}"); ok && !strings.Contains(inner, "{") {
			return []string{inner, text}
		}
	}
	return []string{text}
}
