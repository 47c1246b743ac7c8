package main

import (
	"context"
	"os"
	"os/signal"
	"slices"
	"syscall"
)

// endingSignals are the signals that end a wait. They and the others that are passed on are listened for only if whoever started this
// program does not ignore them, as nohup does.
var endingSignals = []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT}

// signals receives what this process is sent. While no command has taken them over, an ending signal ends their context.
type signals struct {
	c    chan os.Signal
	held chan chan struct{} // who asks is answered when nobody else reads c any more, until the answer is closed
}

type signalsKey struct{}

// interruptible returns a context that ends with a signal, with the signal as its cause.
func (a *app) interruptible(parent context.Context) (context.Context, func()) {
	s := &signals{c: make(chan os.Signal, 64), held: make(chan chan struct{})}
	ctx, cancel := context.WithCancelCause(context.WithValue(parent, signalsKey{}, s))
	listened := slices.DeleteFunc(slices.Concat(endingSignals, passedOn), signal.Ignored)
	signal.Notify(s.c, listened...)
	done := make(chan struct{})
	go func() {
		for {
			select {
			case sig := <-s.c:
				if slices.Contains(endingSignals, sig) {
					cancel(interrupted{sig})
				}
			case answer := <-s.held:
				answer <- struct{}{}
				<-answer
			case <-done:
				return
			}
		}
	}()
	return ctx, func() {
		signal.Stop(s.c)
		close(done)
		cancel(nil)
	}
}

// outliveReaders has what is written to a pipe without a reader be lost, and not this process: it has a lock to give back. Its command
// ends over such a pipe as usual.
func outliveReaders() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }

// takeSignals returns the channel with the signals of this process, which end the context no more until they are given back. From now on,
// those that would suspend it are among them.
func takeSignals(ctx context.Context) (all <-chan os.Signal, giveBack func()) {
	s := ctx.Value(signalsKey{}).(*signals)
	answer := make(chan struct{})
	s.held <- answer
	<-answer
	if suspends := slices.DeleteFunc(slices.Clone(suspending), signal.Ignored); len(suspends) > 0 { // none would mean all
		signal.Notify(s.c, suspends...)
	}
	return s.c, func() { close(answer) }
}
