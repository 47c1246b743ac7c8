// Package play puts the locks of the walk in examples/evolution to the test. Each [Play] is a short story of two or three
// processes, real ones that are stopped and killed, and says in the end whether the lock had a hole.
package play

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

// Step is one lock of the walk.
type Step struct {
	// Name is that of its folder.
	Name string
	// New makes the lock. A process has one.
	New func(Setting) (Locker, error)
	// Store makes what the lock protects, in a Redis of its own. Without it, that is a number without any protection.
	Store func(rdb *redis.Client, l Locker) Store
	// Servers is on how many Redis servers the lock lives; 0 means one.
	Servers int
	// Durable says that these servers write each change to their disk before they answer.
	Durable bool
	// Closes are the plays in which earlier steps failed and this one does not.
	Closes []Play
	// Holes are the plays in which it fails.
	Holes []Play
}

// Setting is what a step makes its lock of.
type Setting struct {
	// Redis has a client for each server of the step.
	Redis []*redis.Client
	// Lease is how long the lock lasts when nobody renews it.
	Lease time.Duration
	// Now is the clock of this machine, which may be wrong.
	Now func() time.Time
}

// Key is the name of the lock.
const Key = "lock"

// Locker is a lock that is tried once: waiting is another story.
type Locker interface {
	TryLock(ctx context.Context) (bool, error)
	Unlock(ctx context.Context) error
}

// Notifier is a Locker that tells its holder when the lock is lost. The first steps have none.
type Notifier interface {
	// Held returns the context of the last successful TryLock. It ends when the lock is lost or unlocked.
	Held() context.Context
}

// Play is a story that a lock may fail in.
type Play struct {
	// Name says in a few words what happens.
	Name string
	// run returns what went wrong, or nothing.
	run func(*stage) (hole string)
}

// Perform performs a play with the lock of a step and tells it to out, a line for each event. It returns the hole that
// showed, or nothing. An error means that the play could not be played.
func Perform(ctx context.Context, out io.Writer, step Step, props Props, p Play) (hole string, err error) {
	s := &stage{ctx: ctx, out: out, props: props}
	hole = p.run(s)
	return hole, errors.Join(s.err, s.close())
}

// Main is the main function of a step: it performs the plays that the step closes, and then those that show its holes. The
// processes in these plays are the same program, started again.
func Main(step Step) {
	ActIfActor(step)
	if len(os.Args) > 1 {
		fmt.Fprintf(os.Stderr, "%s takes no arguments, and starts the servers that it needs\n", step.Name)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := Run(ctx, os.Stdout, step); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// Run performs all plays of a step on servers of its own, and returns an error if one did not end as the step says.
func Run(ctx context.Context, out io.Writer, step Step) error {
	fmt.Fprintf(out, "%s\n", step.Name)
	for _, p := range step.Closes {
		if err := report(ctx, out, step, p, "closed", false); err != nil {
			return err
		}
	}
	for _, p := range step.Holes {
		if err := report(ctx, out, step, p, "open", true); err != nil {
			return err
		}
	}
	return nil
}

func report(ctx context.Context, out io.Writer, step Step, p Play, heading string, expected bool) error {
	fmt.Fprintf(out, "\n%s: %s\n", heading, p.Name)
	props, strike, err := startServers(ctx, step)
	if err != nil {
		return err
	}
	hole, err := Perform(ctx, out, step, props, p)
	err = errors.Join(err, strike())
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", p.Name, err)
	case hole != "":
		fmt.Fprintf(out, "  HOLE: %s\n", hole)
	}
	if (hole != "") != expected {
		return fmt.Errorf("%s, %s: this should have ended otherwise", step.Name, p.Name)
	}
	return nil
}
