// Command services measures what a lock costs in each of the lock services, on private servers of this machine:
//
//	go -C test/services run . -doc ../../docs/choosing.md
//
// For each service it takes and releases a lock that nobody else wants, and then hands one over between two clients, over and over. The
// services take turns, round by round, so that a slow spell of the machine falls on all of them. With -doc it writes its table into a
// page, between two marks. A service whose server is missing it leaves out, and says so.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"math"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"

	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/etcdlock/etcdtest"
)

// service is one with two clients that know nothing of each other.
type service struct {
	name   string
	first  lock.Locker
	second lock.Locker
	stop   func()

	pairs, turns []time.Duration // the median of each round
}

func main() {
	etcdtest.Main() // a member of etcd is this program, started again
	log.SetFlags(0)
	log.SetPrefix("services: ")
	rounds := flag.Int("rounds", 7, "how often each service is measured")
	slice := flag.Duration("slice", time.Second, "how long one measurement takes")
	doc := flag.String("doc", "", "a page with the marks, to write the table into")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	services := open(ctx)
	defer func() {
		for _, s := range services {
			s.stop()
		}
	}()
	for range *rounds {
		for _, s := range services {
			if err := s.measure(ctx, *slice); err != nil {
				log.Printf("%s: %v", s.name, err)
				return
			}
		}
	}
	text := figures(services)
	fmt.Print(text)
	if *doc != "" {
		if err := write(*doc, text); err != nil {
			log.Print(err)
		}
	}
}

// measure adds a round.
func (s *service) measure(ctx context.Context, d time.Duration) error {
	pairs, err := repeat(d, func() (time.Duration, error) { return s.pair(ctx) })
	if err != nil {
		return err
	}
	turns, err := repeat(d, func() (time.Duration, error) { return s.turn(ctx) })
	s.pairs, s.turns = append(s.pairs, pairs), append(s.turns, turns)
	return err
}

// repeat does something for d, and five times at least, and returns the median of the times that it says.
func repeat(d time.Duration, do func() (time.Duration, error)) (time.Duration, error) {
	var all []time.Duration
	for end := time.Now().Add(d); time.Now().Before(end) || len(all) < 5; {
		took, err := do()
		if err != nil {
			return 0, err
		}
		all = append(all, took)
	}
	return median(all), nil
}

func median(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)/2]
}

// pair takes a lock that is free and releases it.
func (s *service) pair(ctx context.Context) (time.Duration, error) {
	start := time.Now()
	h, err := s.first.Acquire(ctx, lock.Request{Key: "cost:pair"})
	if err != nil {
		return 0, err
	}
	err = h.Release(ctx)
	return time.Since(start), err
}

// turn passes a lock from one client to the other, who waits for it, and returns the time from the release to the acquisition.
func (s *service) turn(ctx context.Context) (time.Duration, error) {
	r := lock.Request{Key: "cost:turn", Wait: time.Minute}
	held, err := s.first.Acquire(ctx, r)
	if err != nil {
		return 0, err
	}
	type got struct {
		hold lock.Hold
		at   time.Time
		err  error
	}
	next := make(chan got, 1)
	go func() {
		h, err := s.second.Acquire(ctx, r)
		next <- got{h, time.Now(), err}
	}()
	time.Sleep(30 * time.Millisecond) // it is in line, as far as the service has a line
	released := time.Now()
	if err := held.Release(ctx); err != nil {
		return 0, err
	}
	g := <-next
	if g.err != nil {
		return 0, g.err
	}
	return g.at.Sub(released), g.hold.Release(ctx)
}

// figures is what was measured, as Markdown.
func figures(services []*service) string {
	var b strings.Builder
	b.WriteString("| service | a lock and its release | from a release to the next holder |\n|---|---|---|\n")
	for _, s := range services {
		if len(s.pairs) > 0 {
			fmt.Fprintf(&b, "| %s | %s | %s |\n", s.name, short(median(s.pairs)), short(median(s.turns)))
		}
	}
	return b.String()
}

// short has two digits.
func short(d time.Duration) string {
	ms := float64(d) / float64(time.Millisecond)
	digits := max(0, 1-int(math.Floor(math.Log10(ms))))
	return fmt.Sprintf("%.*f ms", digits, ms)
}

const (
	begin = "<!-- cost -->\n"
	end   = "<!-- end of cost -->\n"
)

// write puts text between the marks of a page.
func write(path, text string) error {
	page, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	before, rest, ok := strings.Cut(string(page), begin)
	_, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		return fmt.Errorf("%s has no lines %q and %q", path, begin, end)
	}
	return os.WriteFile(path, []byte(before+begin+text+end+after), 0o644)
}
