package redisson

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/latchkey-go/latchkey/lock"
)

// Freed is a lock that was freed by hand, with [Client.Free].
type Freed struct {
	// Key is that of the lock in Redis.
	Key string `json:"key"`
	// Holders are those who had it, by [Holder.ID]. Free frees the lock only from these, or from anybody if it is nil.
	Holders []string `json:"holders"`
	// Who names the person who freed it, and Reason says why: UTF-8 without control characters, together of 1,022 bytes
	// at most. Redis records nothing if both are empty.
	Who    string `json:"who"`
	Reason string `json:"reason"`
	// Time is when it was freed, by the clock of Redis. Free sets it.
	Time time.Time `json:"-"`
}

const (
	// mostFrees is how many records Redis keeps, and mostAccount how many bytes of account each has at most.
	mostFrees   = 1000
	mostAccount = 1024
	// newFrees is how many a holder looks at to find out about itself, and reasonPatience how long it waits for them.
	newFrees       = 100
	reasonPatience = time.Second
)

// account joins the name of a person and the reason into one text.
func account(who, reason string) string { return strings.Trim(who+": "+reason, ": ") }

// ErrAccount says that a name or a reason is too long, or not fit for a log.
var ErrAccount = errors.New("redisson: name and reason must be UTF-8 without control characters, and not longer")

func checkAccount(text string, most int) error {
	if len(text) > most || !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl) {
		return fmt.Errorf("%w: %d bytes, of %d at most", ErrAccount, len(text), most)
	}
	return nil
}

// cause returns the reason of a loss by f.
func (f *Freed) cause() error {
	text := account(f.Who, f.Reason)
	if text == "" || checkAccount(text, mostAccount) != nil { // what others wrote
		return ErrForced
	}
	return fmt.Errorf("%w (%s)", ErrForced, text)
}

// note records in Redis who has freed a lock from those holders, and why.
func (c *Client) note(ctx context.Context, f Freed, from []any) error {
	if account(f.Who, f.Reason) == "" {
		return nil
	}
	f.Holders = nil
	for _, field := range from {
		id, _ := field.(string)
		f.Holders = append(f.Holders, strings.TrimSuffix(id, writes))
	}
	text, _ := json.Marshal(f) // never fails
	if a := c.road.AskSoon(context.WithoutCancel(ctx), call{Script: freesAdd, Keys: []string{freesName}, Args: []any{text, mostFrees}}); a.Err != nil {
		return fmt.Errorf("redisson: the lock was freed, but it could not be noted by whom: %w", a.Err)
	}
	return nil
}

// Frees returns the last n locks that were freed by hand with a name or a reason, the newest first. Redis remembers
// 1,000.
func (c *Client) Frees(ctx context.Context, n int) (all []Freed, err error) {
	a := c.query(ctx, call{Script: freesLook, Keys: []string{freesName}, Args: []any{min(n, mostFrees)}})
	for _, entry := range a.List {
		var id string
		var fields []any
		var f Freed
		if unpack(entry, &id, &fields) && len(fields) == 2 && readJSON(fields[1], &f) { // or a stranger has written it
			var ms int64
			_, _ = fmt.Sscan(id, &ms) // and a number behind it
			f.Time = time.UnixMilli(ms)
			all = append(all, f)
		}
	}
	return all, a.Err
}

// reasons returns why holders were freed lately, by their ids.
func (c *Client) reasons() map[string]error {
	ctx, cancel := context.WithTimeout(c.ctx, reasonPatience)
	defer cancel()
	frees, _ := c.Frees(ctx, newFrees) // or nothing is known
	reasons := map[string]error{}
	for _, f := range frees {
		for _, id := range f.Holders {
			reasons[id] = f.cause()
		}
	}
	return reasons
}

// Hold takes a plain lock by hand for d, to keep it shut for maintenance, and records for whom and why. The record has
// 180 bytes at most, of which a space takes three. Nothing renews the lock, and it outlives the program; [Client.Free]
// ends it. If others have it, the error matches lock.ErrBusy. The record stands in the id of the holder, where
// [Client.Inspect] finds it, and the errors of calls that meet the lock repeat it: see lock.BusyError.
func (c *Client) Hold(ctx context.Context, name string, d time.Duration, who, reason string) error {
	text := account(who, reason)
	if err := cmp.Or(checkAccount(text, mostNote), checkAccount(note(byHand+text), mostNote)); err != nil {
		return err
	}
	if d < time.Millisecond {
		return fmt.Errorf("redisson: Hold for %v: want 1ms or more", d)
	}
	h, err := c.acquire(lock.NewOwner(ctx), lock.Request{Key: name, Lease: d, Holder: byHand + text}, false, time.Now())
	if err != nil {
		return err
	}
	return h.(*hold).Keep(ctx, d)
}

const (
	byHand   = "by hand: " // is what a Request.Holder of Hold begins with
	inHand   = ":hand:"    // goes before the text in an id: those of Redisson's transactions have a third part, too
	mostNote = 180
)

// note returns the text to add to the id of a holder that is left behind by hand: there, a space ends it.
func note(by string) string {
	text, ok := strings.CutPrefix(by, byHand)
	if !ok || checkAccount(text, mostNote) != nil {
		return ""
	}
	return inHand + strings.NewReplacer("%", "%25", " ", "%20").Replace(text)
}

// noteOf returns the text that note has added to an id.
func noteOf(id string) string {
	_, text, _ := strings.Cut(id, inHand)
	if text, err := url.PathUnescape(text); err == nil && checkAccount(text, mostNote) == nil {
		return text
	}
	return ""
}

// elsewhere is the last known state of a lock that somebody holds for long.
type elsewhere struct {
	name, text string
	until      time.Time
}

// heldElsewhere notes in busy who holds a lock by hand. It asks Redis only if the lease is longer than any crash
// leaves, once a second, and until by.
func (c *Client) heldElsewhere(ctx context.Context, by time.Time, busy *lock.BusyError, name string, kind lock.Kind) {
	if busy.Here || kind == lock.Permit || busy.Remaining <= c.registry.timeout {
		return
	}
	e := c.elsewhere.Load()
	if e == nil || e.name != name || time.Now().After(e.until) {
		e = &elsewhere{name: name, until: time.Now().Add(describeInterval)}
		a := c.road.Ask(ctx, by, call{Script: lockHolder, Keys: []string{name}})
		var id string
		unpack(a.List, &id) // or nobody holds it
		e.text = noteOf(id)
		if a.Err == nil { // or it is not known
			c.elsewhere.Store(e)
		}
	}
	busy.Elsewhere = e.text
}
