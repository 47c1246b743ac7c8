package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/latchkey-go/latchkey/cmd/latchkey/internal/checkup"
	"github.com/latchkey-go/latchkey/cmd/latchkey/internal/safe"
	"github.com/latchkey-go/latchkey/console"
	"github.com/latchkey-go/latchkey/redisson"
)

// circleLasts is how long a circle has to be there: what its calls say may be a second old.
const circleLasts = 2 * time.Second

// deadlocks looks for locks whose holders wait for each other.
func (a *app) deadlocks(ctx context.Context) error {
	client, done, err := a.open()
	if err != nil {
		return err
	}
	defer done()
	found := map[string][]string{} // by the first of its keys
	for o, err := range client.Objects(ctx, "") {
		if err != nil {
			return a.unanswered(err)
		}
		if way := console.Deadlock(ctx, client.InspectKey, o); way != nil && slices.Min(way) == way[0] {
			found[o.Key] = way
		}
	}
	if len(found) > 0 {
		select {
		case <-time.After(circleLasts):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	failed := false
	for o, err := range client.InspectKeys(ctx, slices.Sorted(maps.Keys(found))) {
		if err != nil {
			return a.unanswered(err)
		}
		if way := console.Deadlock(ctx, client.InspectKey, o); slices.Equal(way, found[o.Key]) {
			failed = true
			a.printFinding(checkup.Finding{Level: checkup.Fail, Check: "deadlock", Text: circleText(o, way),
				Type: "latchkey free " + safe.Text(o.Key) + " --reason deadlock"})
		}
	}
	if failed {
		return &exit{status: statusFound, event: "fail"}
	}
	a.printFinding(checkup.Finding{Level: checkup.OK, Check: "deadlock", Text: "no call that is told of waits in a circle"})
	return nil
}

func circleText(o redisson.Object, way []string) string {
	names := make([]string, len(way))
	for i, key := range way {
		names[i] = safe.Cut(key, 200)
	}
	return fmt.Sprintf("%s: each is held by a call that waits for the next, the first by %s; it ends when one of them gives up", strings.Join(names, " -> "), held(o))
}
