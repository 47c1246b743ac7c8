package console

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/redisson"
)

// An Option changes one thing about a console. The last of several of one kind wins.
type Option interface{ apply(*config) }

type optionFunc func(*config)

func (f optionFunc) apply(c *config) { f(c) }

type config struct {
	authorize   func(*http.Request) error
	allowFree   func(*http.Request) error
	allowSwitch func(*http.Request) error
	who         func(*http.Request) string
	show        func(key string) string
	onFree      func(context.Context, Freed)
	onSwitch    func(context.Context, Switched)
	log         *slog.Logger
}

// Authorize opens the console to requests for which check returns nil, wherever they come from. Without it, or with a nil
// check, only requests from this machine are answered: from a loopback address, to a loopback name, and past no proxy. The
// error is logged and not shown.
//
// Every visitor sees who holds which lock. Serve the console over TLS where it leaves the machine.
func Authorize(check func(*http.Request) error) Option {
	return optionFunc(func(c *config) { c.authorize = check })
}

// AllowFree lets those free locks by hand for whom check returns nil; it is called after Authorize. Without it, or with
// a nil check, nobody can: the console only shows. The error is logged and not shown.
func AllowFree(check func(*http.Request) error) Option {
	return optionFunc(func(c *config) { c.allowFree = check })
}

// AllowSwitch lets those switch guards by hand for whom check returns nil; it is called after Authorize. It is about
// guards whose declaration says switchable, as for [guard.Registry.Switch], in this process only: off, to shadow mode,
// or on. Each is switched for a time of at most 24 hours, after which it has the mode that it had before, unless it was
// switched otherwise meanwhile. Without AllowSwitch, or with a nil check, nobody can. The error is logged and not
// shown.
func AllowSwitch(check func(*http.Request) error) Option {
	return optionFunc(func(c *config) { c.allowSwitch = check })
}

// Who names the sender of a request, for the log of locks that were freed and guards that were switched: the user that
// a proxy or a session names. Without it, the form asks for a name, and believes it.
func Who(name func(*http.Request) string) Option {
	return optionFunc(func(c *config) { c.who = name })
}

// ShowKeys says how much of a key is shown: show returns a text to put in its place. Keys can hold personal data, so without
// it, or with a nil show, a key is shown up to the first of the characters ":/.#" and "{", with some digits that tell it from
// others. A key that is not shown whole is in no link, title or log line either; links to its page are then good for this
// process only.
func ShowKeys(show func(key string) string) Option {
	return optionFunc(func(c *config) { c.show = show })
}

// Whole is for ShowKeys: it shows all of a key.
func Whole(key string) string { return key }

// Freed is the account of a lock that was freed by hand.
type Freed struct {
	// Key is the whole key in Redis.
	Key string
	// Object is the lock before it was freed: who held it, and who waited.
	Object redisson.Object
	// Who did it, as the option Who says or, without that, as the form says; Remote is the address of their request.
	Who, Remote string
	// Reason is the reason that they gave.
	Reason string
	// Time is when the lock was freed.
	Time time.Time
	// Err is nil if the lock was freed. Otherwise Redis did not answer, and the lock may have been freed or not.
	Err error
}

// OnFree calls f for each lock that was freed by hand, before the answer is sent. The context does not end with the request.
// Each is also logged: see Log.
func OnFree(f func(ctx context.Context, freed Freed)) Option {
	return optionFunc(func(c *config) { c.onFree = f })
}

// Switched is the account of a guard that was switched by hand, or back when the time of that was over.
type Switched struct {
	// Guard is its name. Who switched it, as the option Who says or, without that, as the form says; Remote is the
	// address of their request, and Reason the reason in the form.
	Guard, Who, Remote, Reason string
	// Mode is the mode to which the guard was switched, and Before the one that it has again when the time is over.
	Mode, Before guard.Mode
	// Time is when, and Until when it ends. That is zero where nothing ends, as the guard has the mode from before.
	Time, Until time.Time
	// Ended is whether it was switched back because the time is over: from Before, to Mode.
	Ended bool
}

// OnSwitch calls f for each guard that was switched by hand, before the answer is sent, and when it is switched back because its time is over. The
// context does not end with the request. Each is also logged: see Log.
func OnSwitch(f func(ctx context.Context, switched Switched)) Option {
	return optionFunc(func(c *config) { c.onSwitch = f })
}

// Log takes the place of slog.Default for a line about each lock that was freed, each guard that was switched and each form that was refused, at
// WARN, and about each other request that was refused, at INFO.
// Keys are in it as far as ShowKeys shows them.
func Log(l *slog.Logger) Option {
	return optionFunc(func(c *config) { c.log = l })
}
