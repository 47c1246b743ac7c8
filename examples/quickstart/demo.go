package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/latchkey-go/latchkey/examples/quickstart/bankpb"
)

const (
	demoRequests = 400 // in each run, all at once
	demoTimeout  = time.Minute
)

// comparison is the result of the demo.
type comparison struct{ unguarded, guarded tally }

// demo sends the same requests first past the guards and then through them, over real sockets.
func demo(ctx context.Context, s *server) (comparison, error) {
	ctx, cancel := context.WithTimeout(ctx, demoTimeout)
	defer cancel()
	conn, err := grpc.NewClient(s.grpcAddr(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return comparison{}, err
	}
	defer conn.Close()
	transport := &http.Transport{MaxIdleConnsPerHost: demoRequests}
	defer transport.CloseIdleConnections()
	web := &http.Client{Transport: transport}
	base := "http://" + s.httpAddr()

	unguarded := client{web, base + "/unguarded", bankpb.NewUnguardedBankClient(conn)}
	guarded := client{web, base, bankpb.NewBankClient(conn)}
	return comparison{
		unguarded: measure(ctx, s.bank, unguarded.calls()),
		guarded:   measure(ctx, s.bank, guarded.calls()),
	}, nil
}

// call is a request that a client can send any number of times, to other accounts or orders each time.
type call struct {
	updates int64 // that it makes if it succeeds
	send    func(ctx context.Context, n int) error
}

// errBusy is the answer of a guard whose lock is held by others.
var errBusy = errors.New("busy")

type client struct {
	web  *http.Client
	base string
	bank bankpb.BankClient // the client of UnguardedBank has the same methods
}

func (c client) calls() []call {
	return []call{
		{2, func(ctx context.Context, n int) error {
			return c.post(ctx, "/transfers", fmt.Sprintf(`{"from":%q,"to":%q,"cents":1}`, pick(accountIDs, n), pick(accountIDs, n+1)))
		}},
		{1, func(ctx context.Context, n int) error {
			return c.post(ctx, "/accounts/"+pick(accountIDs, n)+"/statements", "")
		}},
		{1, func(ctx context.Context, n int) error {
			return c.post(ctx, "/orders/"+pick(orderIDs, n)+"/payments", `{"cents":1}`)
		}},
		{2, func(ctx context.Context, n int) error {
			_, err := c.bank.Transfer(ctx, &bankpb.TransferRequest{From: pick(accountIDs, n+1), To: pick(accountIDs, n), Cents: 1})
			return grpcAnswer(err)
		}},
		{1, func(ctx context.Context, n int) error {
			_, err := c.bank.Deposit(ctx, &bankpb.DepositRequest{Account: pick(accountIDs, n), Cents: 1})
			return grpcAnswer(err)
		}},
	}
}

func pick(ids []string, n int) string { return ids[n%len(ids)] }

func (c client) post(ctx context.Context, path, body string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+path, strings.NewReader(body))
	if err != nil {
		return err
	}
	res, err := c.web.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	_, err = io.Copy(io.Discard, res.Body)
	switch {
	case res.StatusCode == http.StatusConflict:
		return errBusy
	case res.StatusCode != http.StatusOK:
		return fmt.Errorf("POST %s: %s", path, res.Status)
	}
	return err
}

func grpcAnswer(err error) error {
	if status.Code(err) == codes.Aborted {
		return errBusy
	}
	return err
}

// tally is what became of one run.
type tally struct {
	requests, succeeded, busy int
	failed                    error // the first request that neither succeeded nor found a lock busy
	lost                      int64 // updates that clients were told of, and that are not there
	p50, p99                  time.Duration
}

// measure sends all requests at once. Each update adds one to what its record counts, and so one that overwrites another
// shows as a missing one.
func measure(ctx context.Context, bank *Bank, calls []call) tally {
	before := updates(bank)
	errs := make([]error, demoRequests)
	took := make([]time.Duration, demoRequests)
	start := make(chan struct{})
	var requests sync.WaitGroup
	for i := range demoRequests {
		requests.Go(func() {
			<-start
			began := time.Now()
			errs[i] = calls[i%len(calls)].send(ctx, i/len(calls))
			took[i] = time.Since(began)
		})
	}
	close(start)
	requests.Wait()

	t := tally{requests: demoRequests}
	for i, err := range errs {
		t.count(calls[i%len(calls)], err)
	}
	t.lost -= updates(bank) - before
	slices.Sort(took)
	t.p50, t.p99 = took[len(took)*50/100], took[len(took)*99/100]
	return t
}

// count notes the answer to one request. Until what is there is taken off, lost is what should be.
func (t *tally) count(c call, err error) {
	switch {
	case err == nil:
		t.succeeded++
		t.lost += c.updates
	case errors.Is(err, errBusy):
		t.busy++
	case t.failed == nil:
		t.failed = err
	}
}

func updates(bank *Bank) (n int64) {
	for _, r := range bank.snapshot() {
		n += r.Updates
	}
	return n
}

// print writes the table, and the line of JSON behind it.
func (c comparison) print(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "\trequests\tsucceeded\tbusy\tlost updates\tp50\tp99\t")
	c.unguarded.row(table, "unguarded")
	c.guarded.row(table, "guarded")
	if err := table.Flush(); err != nil {
		return err
	}
	return json.NewEncoder(w).Encode(struct {
		Requests      int     `json:"requests"`
		UnguardedLost int64   `json:"unguarded_lost_updates"`
		GuardedLost   int64   `json:"guarded_lost_updates"`
		GuardedBusy   int     `json:"guarded_busy"`
		P50           float64 `json:"p50_ms"`
		P99           float64 `json:"p99_ms"`
	}{c.guarded.requests, c.unguarded.lost, c.guarded.lost, c.guarded.busy, ms(c.guarded.p50), ms(c.guarded.p99)})
}

func (t tally) row(w io.Writer, name string) {
	fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%.1f ms\t%.1f ms\t\n", name, t.requests, t.succeeded, t.busy, t.lost, ms(t.p50), ms(t.p99))
}

// ms is d in milliseconds, to the tenth.
func ms(d time.Duration) float64 {
	return float64(d.Round(100*time.Microsecond)) / float64(time.Millisecond)
}

// check says why the demo does not show what it is there to show.
func (c comparison) check() error {
	switch {
	case c.unguarded.failed != nil:
		return fmt.Errorf("unguarded: %w", c.unguarded.failed)
	case c.guarded.failed != nil:
		return fmt.Errorf("guarded: %w", c.guarded.failed)
	case c.guarded.lost != 0:
		return fmt.Errorf("%d guarded updates were lost", c.guarded.lost)
	case c.unguarded.lost == 0:
		return errors.New("no unguarded update was lost, so this shows nothing: try again, with more -latency")
	}
	return nil
}
