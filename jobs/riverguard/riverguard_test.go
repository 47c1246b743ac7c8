package riverguard_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
	"github.com/riverqueue/river/rivertype"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/guard/guardtest"
	"github.com/latchkey-go/latchkey/internal/services"
	"github.com/latchkey-go/latchkey/jobs/jobtest"
	"github.com/latchkey-go/latchkey/jobs/riverguard"
	"github.com/latchkey-go/latchkey/lock/memlock"
)

// settle are the arguments of a job.
type settle struct{ jobtest.Order }

func (settle) Kind() string { return "settle" }

// newPool returns connections to a PostgreSQL of its own with River's tables.
func newPool(t *testing.T) *pgxpool.Pool {
	t.Helper()
	s := services.Start(t, "postgres", services.Postgres, services.Options{})
	pool, err := pgxpool.New(t.Context(), "postgres://postgres@"+s.Addr+"/postgres?sslmode=disable&pool_max_conns=60")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	m, err := rivermigrate.New(riverpgxv5.New(pool), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Migrate(t.Context(), rivermigrate.DirectionUp, nil); err != nil {
		t.Fatal(err)
	}
	return pool
}

// soon tries what has failed again after a moment.
type soon struct{}

func (soon) NextRetry(*rivertype.JobRow) time.Time { return time.Now().Add(100 * time.Millisecond) }

// start starts a client with this middleware, whose workers run work.
func start(t *testing.T, pool *pgxpool.Pool, queue string, middleware []rivertype.Middleware, work func(context.Context) error) *river.Client[pgx.Tx] {
	t.Helper()
	workers := river.NewWorkers()
	river.AddWorker(workers, river.WorkFunc(func(ctx context.Context, _ *river.Job[settle]) error { return work(ctx) }))
	client, err := river.NewClient(riverpgxv5.New(pool), &river.Config{
		Queues: map[string]river.QueueConfig{queue: {MaxWorkers: 6}}, Workers: workers, Middleware: middleware,
		FetchCooldown: 10 * time.Millisecond, FetchPollInterval: 20 * time.Millisecond, RetryPolicy: soon{},
		Logger: slog.New(slog.DiscardHandler), TestOnly: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Start(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
	return client
}

func TestBehaviours(t *testing.T) {
	pool := newPool(t)
	jobtest.Run(t, jobtest.Driver{Start: func(t *testing.T, queue string, g *guard.Guard, work func(context.Context) error) jobtest.Runner {
		guarded := guard.Must(riverguard.New[settle](g))
		return runner{start(t, pool, queue, []rivertype.Middleware{guarded}, work), pool, queue}
	}})
}

type runner struct {
	client *river.Client[pgx.Tx]
	pool   *pgxpool.Pool
	queue  string
}

func (r runner) Add(t *testing.T, o jobtest.Order, last bool) jobtest.Job {
	t.Helper()
	res, err := r.client.Insert(t.Context(), settle{o}, &river.InsertOpts{Queue: r.queue, MaxAttempts: map[bool]int{false: 4, true: 1}[last]})
	if err != nil {
		t.Fatal(err)
	}
	return job{r, res.Job.ID}
}

// Again does what River does with a job that seems to be stuck.
func (r runner) Again(t *testing.T, j jobtest.Job) {
	if _, err := r.pool.Exec(t.Context(), "UPDATE river_job SET state = 'available', scheduled_at = now() WHERE id = $1", j.(job).id); err != nil {
		t.Fatal(err)
	}
}

func (r runner) Cancel(t *testing.T, j jobtest.Job) {
	if _, err := r.client.JobCancel(t.Context(), j.(job).id); err != nil {
		t.Fatal(err)
	}
}

func (r runner) Stop() { _ = r.client.StopAndCancel(context.Background()) }

type job struct {
	runner
	id int64
}

func (j job) row(t *testing.T) *rivertype.JobRow {
	row, err := j.client.JobGet(t.Context(), j.id)
	if err != nil {
		t.Fatal(err)
	}
	return row
}

func (j job) State(t *testing.T) (jobtest.State, int) {
	row := j.row(t)
	switch row.State {
	case rivertype.JobStateCompleted:
		return jobtest.Done, len(row.Errors)
	case rivertype.JobStateCancelled, rivertype.JobStateDiscarded:
		return jobtest.Dead, len(row.Errors)
	}
	return jobtest.Pending, len(row.Errors)
}

func (j job) Running(t *testing.T) bool { return j.row(t).State == rivertype.JobStateRunning }

// All facts of a job are there for keys, for all kinds or one.
func TestFacts(t *testing.T) {
	pool, locks, ran := newPool(t), guardtest.New(), make(chan string, 1)
	key := func(template string) *guard.Guard {
		return guard.Must(guard.New(locks, guard.Name("g"), guard.Key(template)))
	}
	middleware := []rivertype.Middleware{
		guard.Must(riverguard.All(key("#{job.Kind}:#{job.Queue}:#{job.ID}:#{job.Attempt}:#{req.id}"))),
		guard.Must(riverguard.New[settle](key("#{req.ID}"))),
		guard.Must(riverguard.New[other](key("other:#{job.ID}"))), // of other jobs
	}
	client := start(t, pool, "facts", middleware, func(context.Context) error {
		ran <- strings.Join(locks.Held(), " ")
		return nil
	})
	defer func() { _ = client.StopAndCancel(context.Background()) }()
	if _, err := client.Insert(t.Context(), settle{jobtest.Order{ID: "7"}}, &river.InsertOpts{Queue: "facts"}); err != nil {
		t.Fatal(err)
	}
	if got := <-ran; got != "settle:facts:1:1:7 7" {
		t.Errorf("keys %q", got)
	}
}

// Three jobs of two orders: those of one order take turns.
func TestExample(t *testing.T) {
	client, err := newClient(newPool(t), memlock.New())
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Start(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.StopAndCancel(context.Background()) }()
	var ids []int64
	for _, order := range []string{"42", "42", "43"} {
		res, err := client.Insert(t.Context(), SettleArgs{OrderID: order}, nil)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, res.Job.ID)
	}
	var ends []time.Time
	for _, id := range ids {
		j := job{runner{client: client}, id}
		for state := jobtest.Pending; state != jobtest.Done; time.Sleep(10 * time.Millisecond) {
			var failures int
			if state, failures = j.State(t); failures > 0 {
				t.Fatalf("job %d has failed", id)
			}
		}
		ends = append(ends, *j.row(t).FinalizedAt)
	}
	if apart := ends[0].Sub(ends[1]).Abs(); apart < 950*time.Millisecond { // the work takes a second
		t.Errorf("two jobs of one order ended within %v", apart)
	}
}

type other struct{}

func (other) Kind() string { return "other" }

func TestMistakes(t *testing.T) {
	for name, opt := range map[string]guard.Option{
		"no such fact":  guard.Key("order:#{path.id}"),
		"no such field": guard.Key("order:#{req.Number}"),
		"KeyFunc":       guard.KeyFunc(func(int) (string, error) { return "", nil }),
	} {
		_, err := riverguard.New[settle](guard.Must(guard.New(memlock.New(), guard.Name("order.settle"), opt)))
		if err == nil || !strings.Contains(err.Error(), "order.settle") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := riverguard.All(nil); err == nil {
		t.Error("a nil guard is no mistake")
	}
}
