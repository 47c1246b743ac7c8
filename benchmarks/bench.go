package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// patience is how much longer than planned a job may take before its worker is ended.
const patience = 20 * time.Second

// bench is one run of the program: the server, the workers, and what they have measured.
type bench struct {
	out     io.Writer
	rounds  int
	void    int           // of them
	slice   time.Duration // how long one peer runs one workload in a round
	peers   *regexp.Regexp
	dir     string // for what workers share, and for nothing else
	server  *server
	link    *link
	counter *proxy // before the server, for as long as the run: the clients of the workers stay connected
	samples samples

	workers map[string][]*process
	failed  map[string]string // why a peer has not done a job, by peer
	broken  map[string]bool   // peers that cannot run any more
	lacks   map[string]string // why a figure is missing, by the beginning of its metric and the peer
	speech  sync.Mutex
	said    map[string]bool
	jobs    int
	round   int
}

// say prints a line, once. Any goroutine may call it.
func (b *bench) say(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	b.speech.Lock()
	defer b.speech.Unlock()
	if !b.said[line] {
		b.said[line] = true
		fmt.Fprintln(b.out, line)
	}
}

// all returns the peers that fit and that the user wants, in an order of chance. In a fixed one a peer would always come after the same
// other one, and what that leaves behind matters: behind a JVM, whose threads keep a core awake, a pair took half of the time.
func (b *bench) all(fit func(contestant) bool) []string {
	found := slices.DeleteFunc(names(fit), func(name string) bool { return !b.peers.MatchString(name) || b.broken[name] })
	rand.Shuffle(len(found), func(i, j int) { found[i], found[j] = found[j], found[i] })
	return found
}

// team returns n workers of a peer, started once a round, and in Java once.
func (b *bench) team(ctx context.Context, name string, n int) ([]*process, error) {
	for len(b.workers[name]) < n {
		command, err := b.command(ctx, name)
		if err != nil {
			return nil, err
		}
		p, err := startProcess(ctx, command)
		if err != nil {
			return nil, err
		}
		b.workers[name] = append(b.workers[name], p)
		if name == java {
			if err := b.warmUpJVM(ctx, p); err != nil {
				return nil, err
			}
		}
	}
	return b.workers[name][:n], nil
}

func (b *bench) command(ctx context.Context, name string) ([]string, error) {
	if name == java {
		return javaCommand(ctx, b.say)
	}
	return own(name)
}

// dismiss ends all workers of a peer.
func (b *bench) dismiss(name string) {
	for _, p := range b.workers[name] {
		p.stop()
	}
	delete(b.workers, name)
}

// renew ends the workers of a round. A process is faster or slower for as long as it lives, by where its memory lies for one, so it is one
// sample, however many rounds it does. The JVM goes on: it is measured warm.
func (b *bench) renew() {
	for name := range b.workers {
		if name != java {
			b.dismiss(name)
		}
	}
}

func (b *bench) close() {
	for name := range b.workers {
		b.dismiss(name)
	}
}

// do has so many workers of a peer do a job at the same time, and adds up what they say.
func (b *bench) do(ctx context.Context, name string, processes int, j job) (result, error) {
	team, err := b.team(ctx, name, processes)
	if err != nil {
		return result{}, b.fail(ctx, name, err)
	}
	b.jobs++
	j.Key = fmt.Sprint("bench:", b.jobs)
	if processes > 1 {
		j.Board = filepath.Join(b.dir, fmt.Sprint("board", b.jobs))
		defer os.Remove(j.Board)
	}
	limit := time.Duration(j.Millis)*time.Millisecond + patience
	type answer struct {
		r   result
		err error
	}
	answers := make(chan answer, processes)
	for side, p := range team {
		mine := j
		mine.Side = side
		go func() {
			r, err := p.do(ctx, mine, limit)
			answers <- answer{r, err}
		}()
	}
	var total result
	for range team {
		a := <-answers
		total = total.merge(a.r, true)
		err = errors.Join(err, a.err)
	}
	if err != nil {
		return total, b.fail(ctx, name, err)
	}
	b.warn(name, j, total)
	return total, nil
}

// errSaid is an error that the user has already seen.
var errSaid = errors.New("a peer has failed")

// fail notes why a job of a peer has no result. A peer that cannot be started, or that hangs, is left out from then on; one
// whose process has ended is started again when it is needed.
func (b *bench) fail(ctx context.Context, name string, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	b.failed[name], _, _ = strings.Cut(err.Error(), "\n")
	if b.workers[name] == nil || errors.Is(err, errHung) {
		b.broken[name] = true
	}
	if errors.Is(err, errHung) || errors.Is(err, errEnded) {
		b.dismiss(name)
	}
	b.say("%s: %v; the rest runs", name, err)
	return errSaid
}

// warn says what a result must not be silent about.
func (b *bench) warn(name string, j job, r result) {
	if r.Overlap > 0 {
		b.say("%s: TWO CALLERS HELD ONE LOCK, %d times (%s, %d callers)", name, r.Overlap, j.Do, j.Callers)
	}
	if r.Failed > 0 {
		b.say("%s: calls failed (%s, %d callers): %s", name, j.Do, j.Callers, r.Failure)
	}
}

// note keeps a figure of this round.
func (b *bench) note(metric, peer string, value float64) { b.samples.add(metric, peer, b.round, value) }

// lack keeps why a peer has no figures of these metrics.
func (b *bench) lack(prefix, peer string, why error) { b.lacks[prefix+" "+peer] = why.Error() }

// missing says why a peer does not have a figure, or nothing if it is not meant to have it.
func (b *bench) missing(p planned, peer string) string {
	for what, why := range b.lacks {
		if prefix, who, _ := strings.Cut(what, " "); who == peer && strings.HasPrefix(p.metric, prefix+"_") {
			return why
		}
	}
	if peer != p.peer {
		return ""
	}
	for _, name := range []string{p.peer, p.base} {
		if why := b.failed[name]; why != "" {
			return name + ": " + why
		}
	}
	if b.server == nil {
		return "there is no redis-server"
	}
	return notRun
}
