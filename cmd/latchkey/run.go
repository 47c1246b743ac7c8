package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/latchkey-go/latchkey/cmd/latchkey/internal/safe"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson"
	"github.com/spf13/cobra"
)

// The variables that the command finds in its environment.
const (
	keyVariable    = "LATCHKEY_KEY"
	tokenVariable  = "LATCHKEY_TOKEN"
	heldVariable   = "LATCHKEY_HELD"   // the locks of this run, and of those around it, in JSON
	reasonVariable = "LATCHKEY_REASON" // for --on-lost
)

// job is one "latchkey run", or a "latchkey lead".
type job struct {
	*app
	verb string
	key  string
	args []string

	kind     kindValue
	wait     waitValue
	limit    int
	lease    time.Duration
	maxHold  time.Duration
	hold     time.Duration
	jitter   time.Duration
	grace    time.Duration
	watchdog time.Duration
	busyExit int
	skipOK   bool
	onLost   string
	name     string
	verbose  bool

	told bool // to end: the command was passed a signal for that
}

func (a *app) runCommand() *cobra.Command {
	j := &job{app: a, verb: "run"}
	c := j.declare(&cobra.Command{
		Use:   "run [flags] KEY -- COMMAND [ARGUMENT...]",
		Short: "Run a command while a lock is held",
		Long:  runHelp,
		Example: `  # one import at a time, on whichever host; others wait for up to 10 seconds
  latchkey run --wait 10s import:prices -- ./import.sh

  # in a crontab on each of several hosts: once in 15 minutes in all, and no mail from those that came second
  */15 * * * *  latchkey run --hold 14m --jitter 2s --skip-ok report -- /opt/report/run

  # no more than three of them at a time, each for no longer than 5 minutes
  latchkey run --kind permit --limit 3 --wait forever --max-hold 5m convert -- ffmpeg -i in.mov out.mp4

  # a token that grows with each holder, for a service that refuses older ones
  latchkey run --kind fenced ledger -- sh -c 'post-entries --fence "$LATCHKEY_TOKEN"'`,
	}, j.once)
	f := c.Flags()
	f.Var(&j.kind, "kind", "plain, fair, read, write, permit, fenced or spin")
	f.Var(&j.wait, "wait", "how long to wait for the lock, or forever; 0 tries once")
	f.IntVar(&j.limit, "limit", 0, "how many may hold a permit at a time; for --kind permit")
	f.DurationVar(&j.lease, "lease", 0, "the lock ends after this time, also if the command has not; 0 renews it")
	f.DurationVar(&j.hold, "hold", 0, "after success, keep the lock until that long after it was taken")
	f.DurationVar(&j.jitter, "jitter", 0, "first sleep for a random part of that time")
	f.IntVar(&j.busyExit, "busy-exit", statusBusy, "exit status if others have the lock")
	f.BoolVar(&j.skipOK, "skip-ok", false, "exit silently with 0 if others have the lock")
	_ = c.RegisterFlagCompletionFunc("kind", cobra.FixedCompletions(kindNames(), cobra.ShellCompDirectiveNoFileComp))
	return c
}

func (a *app) leadCommand() *cobra.Command {
	j := &job{app: a, verb: "lead", kind: kindValue{lock.Fenced}, wait: waitValue{-1}}
	return j.declare(&cobra.Command{
		Use:   "lead [flags] KEY -- COMMAND [ARGUMENT...]",
		Short: "Run a command while this process is the leader",
		Long:  leadHelp,
		Example: `  # on each of three hosts: one of them works, and another one when that is gone
  latchkey lead scheduler -- ./scheduler --fence-by-env`,
	}, j.stand)
}

// declare gives c the common part of run and lead; play is the other part.
func (j *job) declare(c *cobra.Command, play func(context.Context) error) *cobra.Command {
	c.Args = func(c *cobra.Command, args []string) error {
		switch {
		case c.ArgsLenAtDash() == 0 || len(args) == 0:
			return fmt.Errorf("%s needs a KEY", j.verb)
		case c.ArgsLenAtDash() < 0:
			return fmt.Errorf("%s needs -- in front of the command", j.verb)
		case c.ArgsLenAtDash() > 1:
			return fmt.Errorf("%s takes one KEY, and there are %d arguments in front of --", j.verb, c.ArgsLenAtDash())
		case len(args) == 1:
			return fmt.Errorf("%s needs a COMMAND behind --", j.verb)
		}
		return nil
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		j.key, j.args = args[0], args[1:]
		if err := j.checkFlags(); err != nil {
			return err
		}
		outliveReaders()
		return play(c.Context())
	}
	f := c.Flags()
	f.DurationVar(&j.maxHold, "max-hold", 0, "end the command if it runs for longer than that")
	f.DurationVar(&j.grace, "grace", 10*time.Second, "time between SIGTERM and SIGKILL for a command that lost its lock")
	f.DurationVar(&j.watchdog, "watchdog", redisson.DefaultWatchdogTimeout, "lease of a lock that is renewed: how long it outlives a crash")
	f.StringVar(&j.name, "name", "", "name of the holder for those who look at the lock; that of COMMAND without it")
	f.StringVar(&j.onLost, "on-lost", "", "shell command to run when the lock is lost, beside the end of COMMAND")
	f.BoolVarP(&j.verbose, "verbose", "v", false, "say when the lock is taken and given back")
	return c
}

func (j *job) checkFlags() error {
	durations := []struct {
		name string
		d    time.Duration
	}{{"lease", j.lease}, {"max-hold", j.maxHold}, {"hold", j.hold}, {"jitter", j.jitter}, {"grace", j.grace}}
	for _, f := range durations {
		if f.d < 0 {
			return usage("--%s %v is negative", f.name, f.d)
		}
	}
	permit := j.kind.Kind == lock.Permit
	switch {
	case permit && j.limit < 1:
		return usage("--kind permit needs --limit, at least 1")
	case !permit && j.limit != 0:
		return usage("--limit is for --kind permit")
	case j.skipOK && j.busyExit != statusBusy:
		return usage("--skip-ok and --busy-exit: want one of them")
	case j.busyExit < 0 || j.busyExit > 255:
		return usage("--busy-exit %d: want 0 to 255", j.busyExit)
	}
	if err := j.request().Validate(); err != nil {
		return usage("%w", err)
	}
	return j.waitsForItself()
}

// around is a run in whose command this one may be.
type around struct {
	Key   string `json:"key"`
	Kind  string `json:"kind"`
	Redis string `json:"redis"`
	PID   int    `json:"pid"`
}

func (j *job) self() around { return around{j.key, j.kind.String(), j.place(), os.Getpid()} }

// around lists the runs around this one, as far as they live: what a command has started may outlive it.
func (j *job) around() (all []around) {
	_ = json.Unmarshal([]byte(j.getenv(heldVariable)), &all)
	return slices.DeleteFunc(all, func(r around) bool {
		p, err := os.FindProcess(r.PID)
		if err == nil {
			err = p.Signal(syscall.Signal(0))
		}
		return err != nil && !errors.Is(err, os.ErrPermission)
	})
}

// waitsForItself refuses a lock that a run around this one holds until this one has ended.
func (j *job) waitsForItself() error {
	for _, r := range j.around() {
		shared := j.kind.Kind == lock.Permit || r.Kind == lock.Permit.String() || j.kind.Kind == lock.Read && r.Kind == lock.Read.String()
		if r.Key == j.key && r.Redis == j.place() && !shared {
			return usage("%s is held by the latchkey run around this one (process %d), and would be waited for for ever: run the command without another one",
				safe.Cut(j.key, 200), r.PID)
		}
	}
	return nil
}

func (j *job) request() lock.Request {
	return lock.Request{Key: j.key, Kind: j.kind.Kind, Wait: j.wait.Duration, Lease: j.lease, MaxHold: j.maxHold, Limit: j.limit}
}

// once takes the lock, runs the command and gives the lock back.
func (j *job) once(ctx context.Context) error {
	if err := j.sleep(ctx); err != nil {
		return err
	}
	if err := j.reach(ctx); err != nil {
		return err
	}
	client, done, err := j.open(redisson.WatchdogTimeout(j.watchdog), redisson.Name(j.nameOfClient()), redisson.Describe(), redisson.Timeout(min(j.timeout, j.watchdog)))
	if err != nil {
		return err
	}
	defer done()
	start := time.Now()
	h, err := client.Acquire(ctx, j.request())
	if err != nil {
		return j.refused(err)
	}
	taken := time.Now()
	j.detail("taken", fmt.Sprintf("%s is taken after %v", safe.Cut(j.key, 200), taken.Sub(start).Round(time.Millisecond)))
	end, err := j.command(ctx, h)
	return j.release(h, taken, end, err)
}

// stand runs the command whenever this process leads, until it succeeds or a signal ends it. The jitter is the pause
// before the next attempt, which grows as that of guard.Lead.
func (j *job) stand(ctx context.Context) error {
	for {
		began := time.Now()
		err := j.once(ctx)
		e := exitOf(err)
		if err == nil || j.told || !slices.Contains([]string{"ended", "lost", "max-hold", "no-answer"}, e.event) {
			return err
		}
		j.jitter = min(2*j.jitter, 8*time.Second)
		if j.jitter == 0 || time.Since(began) >= 30*time.Second || e.status == statusMaxHold {
			j.jitter = 250 * time.Millisecond
		}
		j.say("stands-again", e.status, fmt.Sprintf("%s, status %d: stands again", e.Error(), e.status), nil)
	}
}

// mostName is how long the name of a client may be.
const mostName = 512

// nameOfClient is the name of the holder for others: without the flag, that of the command.
func (j *job) nameOfClient() string {
	name := strings.ToValidUTF8(cmp.Or(j.name, "latchkey "+j.verb+" "+filepath.Base(j.args[0])), "?")
	return strings.ToValidUTF8(name[:min(len(name), mostName)], "")
}

// sleep is the jitter: hosts whose clocks are good would all come at once, and always the same one first.
func (j *job) sleep(ctx context.Context) error {
	if j.jitter == 0 {
		return nil
	}
	d := rand.N(j.jitter)
	j.detail("jitter", fmt.Sprintf("sleeps for %v", d.Round(time.Millisecond)))
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// refused is how the program ends that could not have the lock.
func (j *job) refused(err error) error {
	if !errors.Is(err, lock.ErrBusy) {
		return j.unanswered(err)
	}
	said := fmt.Sprintf("%s is held by others%s", safe.Cut(j.key, 200), remaining(err))
	if j.skipOK {
		j.detail("busy", said)
		return nil
	}
	return &exit{j.busyExit, "busy", errors.New(said)}
}

// remaining says how long the holder's lease goes on.
func remaining(err error) string {
	if busy, ok := errors.AsType[*lock.BusyError](err); ok && busy.Remaining > 0 {
		text := fmt.Sprintf(", for up to %v if it is not renewed", busy.Remaining.Round(time.Millisecond))
		if busy.Elsewhere != "" {
			text += ": by hand, " + safe.Cut(busy.Elsewhere, 200)
		}
		return text
	}
	return ""
}

// release gives the lock back or keeps it, and decides on the exit status.
func (j *job) release(h lock.Hold, taken time.Time, end ending, err error) error {
	ctx, cancel := context.WithTimeout(context.Background(), j.timeout+time.Second)
	defer cancel()
	rest := j.hold - time.Since(taken)
	keeper, ok := h.(interface {
		Keep(ctx context.Context, d time.Duration) error
	})
	var released error
	if ok && j.hold > 0 && rest >= time.Millisecond && err == nil && end.lost == nil && end.status == 0 {
		released = keeper.Keep(ctx, rest)
	} else {
		released = h.Release(ctx)
	}
	switch {
	case end.lost != nil:
		return j.lost(end.lost, end)
	case err != nil:
		return err
	case errors.Is(released, lock.ErrLost):
		return j.lost(released, end)
	case released != nil:
		j.say("not-released", 0, fmt.Sprintf("the command has ended with status %d, but the lock could not be given back and stays until its lease ends: %v",
			end.status, safe.Lines(released.Error())), nil)
	default:
		j.detail("released", fmt.Sprintf("%s is given back after %v", safe.Cut(j.key, 200), time.Since(taken).Round(time.Millisecond)))
	}
	return end.exit()
}

// lost is how the program ends whose lock has ended before the command.
func (j *job) lost(cause error, end ending) error {
	said := "ended with status"
	if end.killed {
		said = "was killed, status"
	}
	e := *exitOf(cause)
	e.err = fmt.Errorf("the lock %s was lost%s; the command %s %d", safe.Cut(j.key, 200), circumstances(cause), said, end.status)
	return &e
}

// circumstances are when and why a lock was lost.
func circumstances(cause error) string {
	e, ok := errors.AsType[*lock.LostError](cause)
	if !ok {
		return ": " + cause.Error()
	}
	text := fmt.Sprintf(" after %v", e.Held.Round(time.Millisecond))
	if e.Reason != nil {
		text += ": " + e.Reason.Error()
	}
	return text
}

func (j *job) detail(event, message string) {
	if j.verbose {
		j.say(event, 0, message, map[string]any{"key": safe.String(j.key)})
	}
}

// environment is that of the command: ours, and variables about the lock.
func (j *job) environment(h lock.Hold) []string {
	env := slices.DeleteFunc(slices.Clone(j.environ), func(entry string) bool {
		return hasName(entry, keyVariable) || hasName(entry, tokenVariable) || hasName(entry, reasonVariable) || hasName(entry, heldVariable)
	})
	held, _ := json.Marshal(append(j.around(), j.self())) // of texts and numbers, which never fail
	env = append(env, keyVariable+"="+j.key, heldVariable+"="+string(held))
	if fenced, ok := h.(interface{ Token() int64 }); ok && j.kind.Kind == lock.Fenced {
		env = append(env, fmt.Sprintf("%s=%d", tokenVariable, fenced.Token()))
	}
	return env
}
