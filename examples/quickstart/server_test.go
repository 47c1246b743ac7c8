package main

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/latchkey-go/latchkey/examples/quickstart/bankpb"
	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/memlock"
)

type answer struct {
	status int
	header http.Header
	body   string
}

func post(t *testing.T, s *server, path, body string) answer {
	t.Helper()
	res, err := http.Post("http://"+s.httpAddr()+path, "application/json", strings.NewReader(body))
	if err != nil {
		t.Error(err)
		return answer{}
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Error(err)
	}
	return answer{res.StatusCode, res.Header, string(text)}
}

func bankClient(t *testing.T, s *server) bankpb.BankClient {
	t.Helper()
	conn, err := grpc.NewClient(s.grpcAddr(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return bankpb.NewBankClient(conn)
}

func TestHTTP(t *testing.T) {
	long := strings.Repeat("!", maxBody)
	s, _ := start(t, "")
	for _, tt := range []struct {
		path, body string
		status     int
		want       string // in the answer
	}{
		{"/transfers", `{"from":"alice","to":"bob","cents":100}`, 200, `{"from":{"cents":99900,"updates":1},"to":{"cents":100100,"updates":1}}`},
		{"/accounts/bob/statements", "", 200, `{"cents":100099,"updates":2}`},
		{"/orders/7/payments", `{"cents":5}`, 200, `{"cents":5,"updates":1}`},

		{"/transfers", `{"from":"alice","cents":100}`, 400, `"guard":"transfer"`},
		{"/transfers", `{"from":`, 400, `"guard":"transfer"`},
		{"/transfers", "", 400, `"guard":"transfer"`},
		{"/orders/7/payments", `{"cents":"all"}`, 400, "the body is not the JSON"},
		{"/orders/7/payments", `{"note":"` + long + `"}`, 413, "the body is larger"},
		{"/transfers", `{"note":"` + long + `"}`, 413, `"guard":"transfer"`},
		{"/transfers", `{"from":"alice","to":"zoe","cents":100}`, 404, "no such account"},
		{"/accounts/zoe/statements", "", 404, "no such account"},
		{"/orders/9/payments", `{"cents":5}`, 404, "no such account or order"},
		{"/transfers", `{"from":"alice","to":"alice","cents":1}`, 422, "the accounts must differ"},
		{"/transfers", `{"from":"alice","to":"bob","cents":0}`, 422, "the amount must be"},
		{"/orders/7/payments", `{"cents":-5}`, 422, "the amount must be"},
		{"/transfers", `{"from":"alice","to":"bob","cents":99901}`, 422, "not enough money"},
	} {
		res := post(t, s, tt.path, tt.body)
		if res.status != tt.status || !strings.Contains(res.body, tt.want) {
			t.Errorf("POST %s %.80s = %d %s, want %d with %s", tt.path, tt.body, res.status, res.body, tt.status, tt.want)
		}
		problem := res.header.Get("Content-Type") == "application/problem+json"
		if problem != (tt.status != 200) {
			t.Errorf("POST %s %.80s: Content-Type is %q", tt.path, tt.body, res.header.Get("Content-Type"))
		}
	}
}

// A guard's error goes before the bank's own.
func TestRefuse(t *testing.T) {
	for _, tt := range []struct {
		err    error
		status int
	}{
		{&guard.Error{Err: guard.ErrKey}, 400},
		{&guard.Error{Err: guard.ErrLost, Cause: errFunds}, 500},
		{errFunds, 422},
		{context.Canceled, 500},
	} {
		w := httptest.NewRecorder()
		c, _ := gin.CreateTestContext(w)
		refuse(c, tt.err)
		if w.Code != tt.status {
			t.Errorf("refuse(%v) = %d, want %d", tt.err, w.Code, tt.status)
		}
	}
}

func TestGRPC(t *testing.T) {
	s, _ := start(t, "")
	bank := bankClient(t, s)
	for _, tt := range []struct {
		from, to string
		cents    int64
		want     codes.Code
	}{
		{"alice", "bob", 1, codes.OK},
		{"alice", "", 1, codes.InvalidArgument},
		{"alice", "alice", 1, codes.InvalidArgument},
		{"alice", "zoe", 1, codes.NotFound},
		{"alice", "bob", maxCents, codes.FailedPrecondition},
	} {
		_, err := bank.Transfer(t.Context(), &bankpb.TransferRequest{From: tt.from, To: tt.to, Cents: tt.cents})
		if status.Code(err) != tt.want {
			t.Errorf("Transfer(%s, %s, %d) = %v, want %v", tt.from, tt.to, tt.cents, err, tt.want)
		}
	}
	res, err := bank.Deposit(t.Context(), &bankpb.DepositRequest{Account: "bob", Cents: 100})
	if err != nil || res.GetAccount().GetCents() != opening+101 {
		t.Errorf("Deposit = %v, %v, want %d cents", res, err, opening+101)
	}
	if _, err := bank.Deposit(t.Context(), &bankpb.DepositRequest{Cents: 100}); status.Code(err) != codes.InvalidArgument {
		t.Errorf("Deposit without an account = %v, want InvalidArgument", err)
	}
}

// Somebody else holds the locks: every spelling finds them under the same keys, and the twins do not ask.
// How long the calls of a guard take is not known yet, so they are asked to come again in about five seconds.
func TestBusy(t *testing.T) {
	s, locker := start(t, "")
	hold(t, locker, "account:alice")
	hold(t, locker, "order:7")
	bank := bankClient(t, s)
	var calls sync.WaitGroup
	defer calls.Wait()
	for _, tt := range []struct{ path, body string }{
		{"/transfers", `{"from":"alice","to":"bob","cents":1}`},
		{"/transfers", `{"from":"carol","to":"alice","cents":1}`},
		{"/accounts/alice/statements", ""},
		{"/orders/7/payments", `{"cents":1}`},
	} {
		calls.Go(func() {
			res := post(t, s, tt.path, tt.body)
			seconds, err := strconv.Atoi(res.header.Get("Retry-After"))
			if res.status != http.StatusConflict || err != nil || seconds < 4 || seconds > 5 {
				t.Errorf("POST %s %s = %d, Retry-After %q, %s", tt.path, tt.body, res.status, res.header.Get("Retry-After"), res.body)
			}
		})
	}
	calls.Go(func() {
		_, err := bank.Transfer(t.Context(), &bankpb.TransferRequest{From: "bob", To: "alice", Cents: 1})
		wantAborted(t, "Transfer", err)
	})
	calls.Go(func() {
		_, err := bank.Deposit(t.Context(), &bankpb.DepositRequest{Account: "alice", Cents: 1})
		wantAborted(t, "Deposit", err)
	})
}

func wantAborted(t *testing.T, method string, err error) {
	var delay time.Duration
	for _, d := range status.Convert(err).Details() {
		if info, ok := d.(*errdetails.RetryInfo); ok {
			delay = info.GetRetryDelay().AsDuration()
		}
	}
	if status.Code(err) != codes.Aborted || delay < 4*time.Second || delay > 5*time.Second {
		t.Errorf("%s = %v, retry in %v", method, err, delay)
	}
}

// Requests for one account take turns, also by HTTP and gRPC at once: each update that a client was told of is there.
func TestEveryUpdateIsThere(t *testing.T) {
	s, _ := start(t, "")
	s.bank.latency = time.Millisecond
	bank := bankClient(t, s)
	var told atomic.Int64
	var calls sync.WaitGroup
	for range 20 {
		calls.Go(func() {
			if res := post(t, s, "/accounts/alice/statements", ""); res.status == http.StatusOK {
				told.Add(1)
			}
		})
		calls.Go(func() {
			if _, err := bank.Deposit(t.Context(), &bankpb.DepositRequest{Account: "alice", Cents: 1}); err == nil {
				told.Add(1)
			}
		})
	}
	calls.Wait()
	if got := updates(s.bank); got != told.Load() || got == 0 {
		t.Errorf("%d updates are there, and clients were told of %d", got, told.Load())
	}
}

// updates is how many updates all records have seen.
func updates(b *Bank) (n int64) {
	for _, r := range b.snapshot() {
		n += r.Updates
	}
	return n
}

// A server may start before its Redis: it refuses until then, and works afterwards.
func TestRedisLate(t *testing.T) {
	r, err := startEmbedded()
	if err != nil {
		t.Fatal(err)
	}
	addr := r.Addr()
	defer r.Close()
	r.Miniredis.Close()
	s, _ := start(t, addr)
	for _, path := range []string{"/transfers", "/accounts/alice/statements"} {
		res := post(t, s, path, `{"from":"alice","to":"bob","cents":100}`)
		if res.status != http.StatusServiceUnavailable || res.header.Get("Retry-After") == "" {
			t.Errorf("POST %s = %d %v %s, want 503", path, res.status, res.header, res.body)
		}
	}
	if _, err := bankClient(t, s).Deposit(t.Context(), &bankpb.DepositRequest{Account: "bob", Cents: 1}); status.Code(err) != codes.Unavailable {
		t.Errorf("Deposit = %v, want Unavailable", err)
	}
	if got := updates(s.bank); got != 0 {
		t.Errorf("%d updates were made without a lock", got)
	}
	if err := r.Restart(); err != nil {
		t.Fatal(err)
	}
	if res := post(t, s, "/accounts/alice/statements", ""); res.status != http.StatusOK {
		t.Errorf("with Redis: %d %s", res.status, res.body)
	}
}

// An update whose lock is lost, or whose client has gone, is not written.
func TestUpdateEnded(t *testing.T) {
	bank := newBank(time.Hour)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(lock.ErrLost)
	_, err := bank.Transfer(ctx, TransferRequest{From: "alice", To: "bob", Cents: 1})
	if !errors.Is(err, lock.ErrLost) || updates(bank) != 0 {
		t.Errorf("Transfer = %v, with %d updates, want ErrLost and none", err, updates(bank))
	}
}

// Requests that have begun are finished, and then nothing listens any more.
func TestServeShutdown(t *testing.T) {
	locker := announcing{memlock.New(), make(chan struct{}, 2)}
	s, err := newServer(newBank(300*time.Millisecond), locker, "127.0.0.1:0", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	bank := bankClient(t, s)
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- s.serve(ctx) }()

	var calls sync.WaitGroup
	calls.Go(func() {
		if res := post(t, s, "/orders/7/payments", `{"cents":5}`); res.status != http.StatusOK {
			t.Errorf("POST: %d %s", res.status, res.body)
		}
	})
	calls.Go(func() {
		if _, err := bank.Deposit(t.Context(), &bankpb.DepositRequest{Account: "bob", Cents: 1}); err != nil {
			t.Errorf("Deposit = %v", err)
		}
	})
	<-locker.held
	<-locker.held
	stop() // both have begun
	if err := <-served; err != nil {
		t.Errorf("serve = %v", err)
	}
	calls.Wait()
	for _, addr := range []string{s.httpAddr(), s.grpcAddr()} {
		if conn, err := net.Dial("tcp", addr); err == nil {
			_ = conn.Close()
			t.Errorf("something still listens on %s", addr)
		}
	}
}

// announcing is a locker that tells of each lock it gives.
type announcing struct {
	lock.Locker
	held chan struct{}
}

func (l announcing) Acquire(ctx context.Context, r lock.Request) (lock.Hold, error) {
	h, err := l.Locker.Acquire(ctx, r)
	l.held <- struct{}{}
	return h, err
}
