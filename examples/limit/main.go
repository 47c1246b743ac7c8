// Limit bounds what calls use of something scarce, a licence or a slow partner's API, counted over all machines: how many at once, how many of them for
// one customer, and how often.
//
//	go -C examples run ./limit                                   # with locks of this process
//	go -C examples run ./limit --redis redis://localhost:6379     # with locks that other machines see
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/examples/internal/example"
	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/lock"
)

func main() { example.Main(run) }

// Report is a request for a report, which takes one of the partner's licences for a while.
type Report struct{ Partner, Customer string }

// partner counts how many reports it makes at once, in all and for each customer.
type partner struct {
	mu   sync.Mutex
	now  map[string]int
	most [2]int // in all, and for a customer
	made int
}

func (p *partner) report(ctx context.Context, r Report) error {
	p.count(r, 1)
	defer p.count(r, -1)
	select {
	case <-time.After(20 * time.Millisecond):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (p *partner) count(r Report, by int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.made += max(by, 0)
	for i, who := range []string{"", r.Customer} {
		p.now[who] += by
		p.most[i] = max(p.most[i], p.now[who])
	}
}

// bounds are three ways to say how many. Where several levels have one key, as two guards of a program may, they share its places.
var bounds = []struct {
	about  string
	option []guard.Option
}{
	{"three at once", []guard.Option{guard.Name("licence"), guard.Key("{#{req.Partner}}:licence"), guard.Limit(3)}},
	{"one a customer, four at once", []guard.Option{guard.Name("fair"), guard.Key("{#{req.Partner}}:#{req.Customer}"),
		guard.Limit(1), guard.Level(4, "{#{req.Partner}}:all")}},
	{"ten within 200ms", []guard.Option{guard.Name("gentle"), guard.Key("{#{req.Partner}}:calls"), guard.Rate(10, 200*time.Millisecond)}},
}

func run(ctx context.Context, locker lock.Locker, out io.Writer) error {
	for _, b := range bounds {
		g, err := guard.New(locker, append(b.option, guard.Wait(time.Minute))...)
		if err != nil {
			return err
		}
		acme := partner{now: map[string]int{}}
		report, err := guard.Action(g, acme.report)
		if err != nil {
			return err
		}
		start, failures := time.Now(), make([]error, 30)
		var all sync.WaitGroup
		for i := range failures {
			all.Go(func() { failures[i] = report(ctx, Report{Partner: "acme", Customer: fmt.Sprint(i % 6)}) })
		}
		all.Wait()
		if err := errors.Join(failures...); err != nil {
			return err
		}
		fmt.Fprintf(out, "%s: %d reports within %v, at most %d at once and %d of a customer\n",
			b.about, acme.made, time.Since(start).Round(100*time.Millisecond), acme.most[0], acme.most[1])
	}
	return nil
}
