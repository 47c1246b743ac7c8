package main

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/lock"
)

// Sale is a request for one seat.
type Sale struct{ Show string }

// Report is a request for the report of a day.
type Report struct{ Day string }

// guarded is what the program does. Nothing here knows which lock service it is.
type guarded struct {
	sell   func(context.Context, Sale) error
	report func(context.Context, Report) error
}

func newGuarded(locker lock.Locker, b box) (g guarded, err error) {
	sell, err := guard.New(locker, guard.Name("seat.sell"), guard.Key("show:#{req.Show}"), guard.Wait(guard.Forever))
	if err != nil {
		return g, err
	}
	// All processes start the report, and one makes it: the others find it held, or done.
	report, err := guard.New(locker, guard.Name("report"), guard.Key("report:#{req.Day}"), guard.Busy(guard.Skip),
		guard.HoldAtLeast(time.Minute))
	if err != nil {
		return g, err
	}
	if g.sell, err = guard.Action(sell, b.sell); err != nil {
		return g, err
	}
	g.report, err = guard.Action(report, b.report)
	return g, err
}
