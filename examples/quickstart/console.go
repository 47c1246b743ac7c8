package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/latchkey-go/latchkey/console"
	"github.com/latchkey-go/latchkey/examples/quickstart/bankpb"
	"github.com/latchkey-go/latchkey/redisson"
)

const (
	consoleAddr  = "127.0.0.1:8081" // no other machine reaches it
	consolePause = 200 * time.Millisecond
	visitors     = 8 // that send requests, one after the other

	consoleLatency = 300 * time.Millisecond // so that there is something to see
)

// newConsole is the page of the bank's locks. Anybody at this machine may see all of it, and free locks.
func newConsole(s *server, locker *redisson.Client) (http.Handler, error) {
	return console.New(locker, s.registry, console.ShowKeys(console.Whole), console.AllowFree(func(*http.Request) error { return nil }))
}

// runConsole serves the bank and its console, while visitors keep it busy, until ctx ends.
func runConsole(ctx context.Context, s *server, locker *redisson.Client, stdout io.Writer) error {
	page, err := newConsole(s, locker)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", consoleAddr)
	if err != nil {
		return fmt.Errorf("-console: %w", err)
	}
	conn, err := grpc.NewClient(s.grpcAddr(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer conn.Close()
	web := &http.Server{Handler: page, ReadHeaderTimeout: 5 * time.Second}
	fmt.Fprintf(stdout, "The locks and guards of a bank, live: http://%s. Its HTTP is on %s, its gRPC on %s. Ctrl-C ends it.\n", listener.Addr(), s.httpAddr(), s.grpcAddr())

	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var failed [2]error
	var all sync.WaitGroup
	all.Go(func() { defer stop(); failed[0] = s.serve(ctx) })
	all.Go(func() { defer stop(); failed[1] = web.Serve(listener) })
	guests := client{web: http.DefaultClient, base: "http://" + s.httpAddr(), bank: bankpb.NewBankClient(conn)}
	for range visitors {
		all.Go(func() { visit(ctx, guests.calls()) })
	}
	<-ctx.Done()
	_ = web.Shutdown(context.Background()) // ends the pages that are open
	all.Wait()
	if errors.Is(failed[1], http.ErrServerClosed) {
		failed[1] = nil
	}
	return errors.Join(failed[:]...)
}

// call is a request that a client can send any number of times, to other accounts or orders each time.
type call func(ctx context.Context, n int) error

// client sends requests to the bank, by HTTP and by gRPC.
type client struct {
	web  *http.Client
	base string
	bank bankpb.BankClient
}

func (c client) calls() []call {
	return []call{
		func(ctx context.Context, n int) error {
			return c.post(ctx, "/transfers", fmt.Sprintf(`{"from":%q,"to":%q,"cents":1}`, pick(accountIDs, n), pick(accountIDs, n+1)))
		},
		func(ctx context.Context, n int) error {
			return c.post(ctx, "/accounts/"+pick(accountIDs, n)+"/statements", "")
		},
		func(ctx context.Context, n int) error {
			return c.post(ctx, "/orders/"+pick(orderIDs, n)+"/payments", `{"cents":1}`)
		},
		func(ctx context.Context, n int) error {
			_, err := c.bank.Transfer(ctx, &bankpb.TransferRequest{From: pick(accountIDs, n+1), To: pick(accountIDs, n), Cents: 1})
			return err
		},
		func(ctx context.Context, n int) error {
			_, err := c.bank.Deposit(ctx, &bankpb.DepositRequest{Account: pick(accountIDs, n), Cents: 1})
			return err
		},
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
	return res.Body.Close()
}

// visit sends requests until ctx ends. Some are refused, as their locks are busy; the console shows it.
func visit(ctx context.Context, calls []call) {
	for ctx.Err() == nil {
		_ = calls[rand.IntN(len(calls))](ctx, rand.IntN(1000))
		select {
		case <-time.After(rand.N(consolePause)):
		case <-ctx.Done():
		}
	}
}
