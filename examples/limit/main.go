// Limit lets at most three calls at once use something scarce, counted over all machines: a licence, a slow partner's API.
//
//	go run ./examples/limit                                   # with locks of this process
//	go run ./examples/limit --redis redis://localhost:6379     # with locks that other machines see
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/latchkey-go/latchkey/examples/internal/example"
	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/lock"
)

func main() { example.Main(run) }

// Report is a request for a report, which takes one of the partner's licences for a while.
type Report struct{ Partner, Customer string }

// partner counts how many reports it makes at once.
type partner struct{ now, most, made atomic.Int64 }

func (p *partner) report(ctx context.Context, _ Report) (string, error) {
	now := p.now.Add(1)
	defer p.now.Add(-1)
	for most := p.most.Load(); now > most && !p.most.CompareAndSwap(most, now); most = p.most.Load() {
	}
	select {
	case <-time.After(20 * time.Millisecond):
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	return fmt.Sprintf("report %d", p.made.Add(1)), nil
}

const (
	licences  = 3
	customers = 30
)

func run(ctx context.Context, locker lock.Locker, out io.Writer) error {
	g, err := guard.New(locker, guard.Name("partner.report"), guard.Key("licence:#{req.Partner}"),
		guard.Limit(licences), guard.Wait(time.Minute))
	if err != nil {
		return err
	}
	var acme partner
	report, err := guard.Func(g, acme.report)
	if err != nil {
		return err
	}
	failures := make([]error, customers)
	var all sync.WaitGroup
	for i := range customers {
		all.Go(func() {
			_, failures[i] = report(ctx, Report{Partner: "acme", Customer: fmt.Sprint(i)})
		})
	}
	all.Wait()
	fmt.Fprintf(out, "%d reports made, at most %d at once\n", acme.made.Load(), acme.most.Load())
	return errors.Join(failures...)
}
