package console

import (
	"context"
	"slices"
	"time"

	"github.com/latchkey-go/latchkey/redisson"
)

// Sign says in words whether who holds a lock lives, as far as was heard by then: "renewed 4s ago", or "not renewed for 25s: dead or cut off, free
// in 5s". It is empty of a holder that says nothing of itself. Silent reports whether a sign is overdue. A process that is stopped or cut off from
// Redis is as silent as a dead one, and the time of a lease that ends by itself says nothing.
func Sign(h *redisson.Holder, now time.Time) (text string, silent bool) {
	last, yes, no := h.Renewed, "renewed ", "not renewed for "
	if last.IsZero() {
		last, yes, no = h.Who.Heard, "its process was heard ", "its process was not heard for "
	}
	if last.IsZero() {
		return "", false
	}
	quiet, period := max(0, now.Sub(last)), h.Who.Watchdog/3
	switch {
	case quiet < period*5/4:
		return yes + spanText(quiet) + " ago", false
	case quiet < 2*period:
		return no + spanText(quiet), true
	}
	text = no + spanText(quiet) + ": dead or cut off"
	if h.Lease > 0 {
		text += ", free in " + spanText(h.Lease)
	}
	return text, true
}

// mostDeep bounds the locks of a circle.
const mostDeep = 10

// Deadlock returns the keys of locks whose holders wait for each other, beginning with that of o and ending with it, or nil. It knows of the calls that
// clients with the option [redisson.Describe] tell of; one that waits for a lock which it holds itself is a circle of two. The answer is true if all
// of these waits lasted while it was looked for. Errors end a way.
func Deadlock(ctx context.Context, inspect func(context.Context, string) (redisson.Object, error), o redisson.Object) []string {
	return circle(ctx, inspect, &o, []string{o.Key})
}

// circle follows those who hold o and wait for others. A caller that wants a permit is kept out only as long as all who
// have one wait.
func circle(ctx context.Context, inspect func(context.Context, string) (redisson.Object, error), o *redisson.Object, way []string) (found []string) {
	for i := range o.Holders {
		next := waitsOf(ctx, inspect, &o.Holders[i], way)
		switch {
		case next == nil && o.Type == redisson.TypeExpirableSemaphore:
			return nil
		case next == nil:
			continue
		}
		if found = next; o.Type != redisson.TypeExpirableSemaphore {
			return found
		}
	}
	return found
}

func waitsOf(ctx context.Context, inspect func(context.Context, string) (redisson.Object, error), h *redisson.Holder, way []string) []string {
	if h.About == nil {
		return nil
	}
	for _, key := range h.About.Waits {
		if on := append(slices.Clip(way), key); key == way[0] {
			return on
		} else if len(on) <= mostDeep && !slices.Contains(way, key) {
			if o, err := inspect(ctx, key); err == nil {
				if found := circle(ctx, inspect, &o, on); found != nil {
					return found
				}
			}
		}
	}
	return nil
}
