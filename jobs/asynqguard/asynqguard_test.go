package asynqguard_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/guard/guardtest"
	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/jobs/asynqguard"
	"github.com/latchkey-go/latchkey/jobs/jobtest"
	"github.com/latchkey-go/latchkey/lock/memlock"
)

func TestBehaviours(t *testing.T) {
	s := redistest.Start(t) // the queues'; the locks are in others
	rdb := s.Client(t)
	client, inspector := asynq.NewClientFromRedisClient(rdb), asynq.NewInspectorFromRedisClient(rdb)
	jobtest.Run(t, jobtest.Driver{Start: func(t *testing.T, queue string, g *guard.Guard, work func(context.Context) error) jobtest.Runner {
		server := asynq.NewServerFromRedisClient(rdb, asynq.Config{
			Queues: map[string]int{queue: 1}, Concurrency: 6, ShutdownTimeout: time.Second,
			TaskCheckInterval: 20 * time.Millisecond, DelayedTaskCheckInterval: 50 * time.Millisecond,
			IsFailure: asynqguard.IsFailure,
			RetryDelayFunc: func(n int, err error, t *asynq.Task) time.Duration {
				if asynqguard.IsFailure(err) {
					return 100 * time.Millisecond
				}
				return asynqguard.RetryDelay(n, err, t)
			},
			LogLevel: asynq.FatalLevel,
		})
		mux := asynq.NewServeMux()
		mux.Handle("settle", guard.Must(asynqguard.New[jobtest.Order](g))(asynq.HandlerFunc(func(ctx context.Context, _ *asynq.Task) error { return work(ctx) })))
		if err := server.Start(mux); err != nil {
			t.Fatal(err)
		}
		return runner{server, client, inspector, rdb, queue}
	}})
}

type runner struct {
	server    *asynq.Server
	client    *asynq.Client
	inspector *asynq.Inspector
	rdb       *redis.Client
	queue     string
}

func (r runner) Add(t *testing.T, o jobtest.Order, last bool) jobtest.Job {
	t.Helper()
	payload, _ := json.Marshal(o)
	task, err := r.client.Enqueue(asynq.NewTask("settle", payload), asynq.Queue(r.queue), asynq.MaxRetry(map[bool]int{false: 3}[last]), asynq.Retention(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	return job{r, task.ID}
}

// Again does what asynq does with a task whose lease has expired.
func (r runner) Again(t *testing.T, j jobtest.Job) {
	id := j.(job).id
	key := "asynq:{" + r.queue + "}:"
	if err := errors.Join(r.rdb.HSet(t.Context(), key+"t:"+id, "state", "pending").Err(), r.rdb.LPush(t.Context(), key+"pending", id).Err()); err != nil {
		t.Fatal(err)
	}
}

func (r runner) Cancel(t *testing.T, j jobtest.Job) {
	if err := r.inspector.CancelProcessing(j.(job).id); err != nil {
		t.Fatal(err)
	}
}

func (r runner) Stop() { r.server.Shutdown() }

type job struct {
	runner
	id string
}

func (j job) State(t *testing.T) (jobtest.State, int) {
	info := j.info(t)
	switch info.State {
	case asynq.TaskStateCompleted:
		return jobtest.Done, info.Retried
	case asynq.TaskStateArchived:
		return jobtest.Dead, info.Retried
	}
	return jobtest.Pending, info.Retried
}

func (j job) Running(t *testing.T) bool { return j.info(t).State == asynq.TaskStateActive }

func (j job) info(t *testing.T) *asynq.TaskInfo {
	info, err := j.inspector.GetTaskInfo(j.queue, j.id)
	if err != nil {
		t.Fatal(err)
	}
	return info
}

// All facts of a task are there for keys, of one handler or all, and payloads need not be JSON.
func TestFacts(t *testing.T) {
	s := redistest.Start(t)
	rdb := s.Client(t)
	ran := make(chan string, 1)
	locks := guardtest.New()
	key := func(template string) *guard.Guard {
		return guard.Must(guard.New(locks, guard.Name("g"), guard.Key(template)))
	}
	first := func(payload []byte) (string, error) {
		word, _, ok := strings.Cut(string(payload), ",")
		if !ok {
			return "", errors.New("no comma")
		}
		return word, nil
	}
	mux := asynq.NewServeMux()
	mux.Use(guard.Must(asynqguard.New[any](key("#{job.Kind}:#{job.Queue}:#{job.ID}:#{job.Attempt}"))))
	mux.Handle("csv", guard.Must(asynqguard.Decoding(key("#{req}"), first))(asynq.HandlerFunc(func(context.Context, *asynq.Task) error {
		ran <- strings.Join(locks.Held(), " ")
		return nil
	})))
	server := asynq.NewServerFromRedisClient(rdb, asynq.Config{LogLevel: asynq.FatalLevel, TaskCheckInterval: 20 * time.Millisecond})
	if err := server.Start(mux); err != nil {
		t.Fatal(err)
	}
	defer server.Shutdown()
	if _, err := asynq.NewClientFromRedisClient(rdb).Enqueue(asynq.NewTask("csv", []byte("acme,1")), asynq.TaskID("one")); err != nil {
		t.Fatal(err)
	}
	if got := <-ran; got != "csv:default:one:1 acme" {
		t.Errorf("keys %q", got)
	}
}

func TestMistakes(t *testing.T) {
	for name, opt := range map[string]guard.Option{
		"no such fact":  guard.Key("order:#{path.id}"),
		"no such field": guard.Key("order:#{req.Number}"),
		"KeyFunc":       guard.KeyFunc(func(int) (string, error) { return "", nil }),
	} {
		_, err := asynqguard.New[jobtest.Order](guard.Must(guard.New(memlock.New(), guard.Name("order.settle"), opt)))
		if err == nil || !strings.Contains(err.Error(), "order.settle") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := asynqguard.New[jobtest.Order](nil); err == nil {
		t.Error("a nil guard is no mistake")
	}
	if _, err := asynqguard.Decoding[string](guard.Must(guard.New(memlock.New(), guard.Name("g"), guard.Key("#{req}"))), nil); err == nil {
		t.Error("a nil function is no mistake")
	}
}

func TestErrors(t *testing.T) {
	own := errors.New("own")
	if asynqguard.IsFailure(nil) || !asynqguard.IsFailure(own) {
		t.Error("IsFailure")
	}
	if d := asynqguard.RetryDelay(1, own, asynq.NewTask("t", nil)); d < time.Second {
		t.Errorf("RetryDelay = %v, want that of asynq", d)
	}
}
