package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/latchkey-go/latchkey/cmd/latchkey/internal/safe"
	"github.com/latchkey-go/latchkey/console"
	"github.com/latchkey-go/latchkey/redisson"
)

// object is an object in JSON. Times are seconds; null is one without an end.
type object struct {
	Key         safe.String `json:"key"`
	Type        string      `json:"type"`
	Kind        string      `json:"kind"`
	Mode        string      `json:"mode,omitempty"`
	TTL         *float64    `json:"ttl_seconds"`
	Since       *time.Time  `json:"since,omitempty"`
	Holders     []holder    `json:"holders"`
	HolderCount int64       `json:"holder_count"`
	Queue       []waiter    `json:"queue"`
	QueueLength int64       `json:"queue_length"`
	Listeners   int64       `json:"listeners"`
	Token       int64       `json:"token,omitempty"`
	Permits     *int64      `json:"permits,omitempty"`
}

type holder struct {
	ID     safe.String `json:"id"`
	Client string      `json:"client,omitempty"`
	Count  int         `json:"count"`
	Lease  *float64    `json:"lease_seconds"`
	Write  bool        `json:"write,omitempty"`
	Who    *identity   `json:"who,omitempty"`
	About  *about      `json:"about,omitempty"`
}

// about is a holder's description by its program.
type about struct {
	Since   *time.Time    `json:"since,omitempty"`
	For     safe.String   `json:"for,omitempty"`
	Trace   safe.String   `json:"trace,omitempty"`
	Renewed *time.Time    `json:"renewed,omitempty"`
	Waits   []safe.String `json:"waits,omitempty"`
}

func aboutOf(h redisson.Holder) *about {
	if h.About == nil {
		return nil
	}
	a := &about{Since: deadline(h.About.Since), For: safe.String(h.About.For), Trace: safe.String(h.About.Trace), Renewed: deadline(h.Renewed)}
	for _, key := range h.About.Waits {
		a.Waits = append(a.Waits, safe.String(key))
	}
	return a
}

type waiter struct {
	ID     safe.String `json:"id"`
	Client string      `json:"client,omitempty"`
	Until  *time.Time  `json:"until,omitempty"`
	Who    *identity   `json:"who,omitempty"`
}

type identity struct {
	Name    safe.String `json:"name"`
	Host    safe.String `json:"host"`
	PID     int         `json:"pid"`
	Version safe.String `json:"version,omitempty"`
	Since   time.Time   `json:"since"`
	Heard   *time.Time  `json:"heard,omitempty"`
}

func document(o redisson.Object) object {
	doc := object{Key: safe.String(o.Key), Type: o.Type.String(), Kind: console.KindOf(o), Mode: o.Mode, TTL: seconds(o.TTL), Since: deadline(heldSince(o)), Holders: []holder{}, HolderCount: o.HolderCount,
		Queue: []waiter{}, QueueLength: o.QueueLength, Listeners: o.Listeners, Token: o.Token}
	if counts(o.Type) {
		doc.Permits = &o.Permits
	}
	for _, h := range o.Holders {
		doc.Holders = append(doc.Holders, holder{safe.String(h.ID), h.Client, h.Count, seconds(h.Lease), h.Write, who(h.Who), aboutOf(h)})
	}
	for _, w := range o.Queue {
		doc.Queue = append(doc.Queue, waiter{safe.String(w.ID), w.Client, deadline(w.Until), who(w.Who)})
	}
	return doc
}

// counts reports whether objects of a type have a number.
func counts(t redisson.ObjectType) bool {
	return t == redisson.TypeSemaphore || t == redisson.TypeExpirableSemaphore || t == redisson.TypeCountDownLatch
}

func seconds(d time.Duration) *float64 {
	if d < 0 {
		return nil
	}
	s := d.Seconds()
	return &s
}

func deadline(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

func who(i redisson.Identity) *identity {
	if i == (redisson.Identity{}) {
		return nil
	}
	return &identity{safe.String(i.Name), safe.String(i.Host), i.PID, safe.String(i.Version), i.Since, deadline(i.Heard)}
}

// rest is a time to live for people.
func rest(d time.Duration) string {
	switch {
	case d < 0:
		return "no end"
	case d < time.Minute:
		return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + "s"
	}
	return d.Round(time.Second).String()
}

// called is a short name of a holder or waiter.
func called(id string, i redisson.Identity) string {
	if i == (redisson.Identity{}) {
		return safe.Cut(id, 60)
	}
	return fmt.Sprintf("%s on %s, pid %d", safe.Cut(i.Name, 40), safe.Cut(i.Host, 40), i.PID)
}

// held describes in a few words the holder of an object, or the rest of it.
func held(o redisson.Object) string {
	var parts []string
	if counts(o.Type) {
		parts = append(parts, strconv.FormatInt(o.Permits, 10)+map[bool]string{true: " to go", false: " free"}[o.Type == redisson.TypeCountDownLatch])
	}
	if o.Mode != "" {
		parts = append(parts, o.Mode)
	}
	if len(o.Holders) > 0 {
		h := o.Holders[0]
		if h.About != nil && h.About.Since.IsZero() {
			parts = append(parts, "by hand, "+safe.Cut(h.About.For, 60))
		} else {
			parts = append(parts, called(h.ID, h.Who))
		}
	}
	if o.HolderCount > 1 {
		parts = append(parts, fmt.Sprintf("and %d more", o.HolderCount-1))
	}
	if len(parts) == 0 {
		return "-"
	}
	return strings.Join(parts, ", ")
}

// waiting is how many wait, as far as Redis knows: clients that listen, and those in the queue of a fair lock.
func waiting(o redisson.Object) int64 { return max(o.Listeners, o.QueueLength) }

// keyWidth is what a table has for a key. JSON has all of it.
const keyWidth = 60

// heading and row are the columns of a table.
const heading = "KEY\tKIND\tREST\tWAITING\tTOKEN\tHELD BY\n"

func row(o redisson.Object) string {
	token := "-"
	if o.Token > 0 {
		token = strconv.FormatInt(o.Token, 10)
	}
	return fmt.Sprintf("%s\t%s\t%s\t%d\t%s\t%s\n", safe.Cut(o.Key, keyWidth), console.KindOf(o), rest(o.TTL), waiting(o), token, held(o))
}
