package console

import (
	"context"
	"errors"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/redisson"
)

// fakeRedis has objects by key, and counts what it is asked.
type fakeRedis struct {
	mu       sync.Mutex
	objects  map[string]redisson.Object
	down     error
	slow     time.Duration // a search
	searches int
	inspects int
	freed    []string
	frees    []redisson.Freed
}

func newFake(objects ...redisson.Object) *fakeRedis {
	f := &fakeRedis{objects: map[string]redisson.Object{}}
	for _, o := range objects {
		f.put(o)
	}
	return f
}

func (f *fakeRedis) put(o redisson.Object) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.objects[o.Key] = o
}

func (f *fakeRedis) forget(key string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.objects, key)
}

func (f *fakeRedis) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.down = err
}

func (f *fakeRedis) InspectKey(_ context.Context, key string) (redisson.Object, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.inspects++
	if f.down != nil {
		return redisson.Object{}, f.down
	}
	o, ok := f.objects[key]
	if !ok {
		return redisson.Object{Key: key}, nil
	}
	return o, nil
}

func (f *fakeRedis) InspectKeys(ctx context.Context, keys []string, _ ...redisson.SearchOption) iter.Seq2[redisson.Object, error] {
	return func(yield func(redisson.Object, error) bool) {
		for _, key := range keys {
			o, err := f.InspectKey(ctx, key)
			if err != nil {
				o = redisson.Object{Key: key}
			}
			if !yield(o, err) {
				return
			}
		}
	}
}

func (f *fakeRedis) Objects(context.Context, string, ...redisson.SearchOption) iter.Seq2[redisson.Object, error] {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.searches++
	down := f.down
	var all []redisson.Object
	for _, o := range f.objects {
		all = append(all, o)
	}
	return func(yield func(redisson.Object, error) bool) {
		time.Sleep(f.slow)
		if down != nil {
			yield(redisson.Object{}, down)
			return
		}
		for _, o := range all {
			if !yield(o, nil) {
				return
			}
		}
	}
}

func (f *fakeRedis) Frees(context.Context, int) ([]redisson.Freed, error) { return f.frees, f.down }

func (f *fakeRedis) Free(_ context.Context, freed redisson.Freed) (bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	key := freed.Key
	_, ok := f.objects[key]
	delete(f.objects, key)
	if ok {
		f.freed = append(f.freed, key)
	}
	return ok, nil
}

func (f *fakeRedis) counts() (searches, inspects int, freed []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.searches, f.inspects, f.freed
}

const (
	clientA = "0b5d1d0c-6f3e-4a55-9b47-6a7c0f9d2a11"
	clientB = "5f1c2f0e-52b7-4d0e-8b0e-1f0a9d3c7e22"
)

// held is a lock that a client holds.
func heldLock(key, id string) redisson.Object {
	client, _, _ := strings.Cut(id, ":")
	return redisson.Object{
		Key: key, Type: redisson.TypeLock, TTL: 24 * time.Second, HolderCount: 1,
		Holders: []redisson.Holder{{ID: id, Client: client, Count: 1, Lease: 24 * time.Second}},
	}
}

var errDown = errors.New("connection refused")

func allow(*http.Request) error { return nil }

// quiet is an Option for tests that look at no log.
var quiet = Log(slog.New(slog.NewTextHandler(io.Discard, nil)))

// serve runs a console on a server of its own.
func serve(t *testing.T, f inspector, opts ...Option) *httptest.Server {
	t.Helper()
	h, err := newHandler(f, nil, append([]Option{quiet}, opts...))
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

type answered struct {
	status int
	header http.Header
	body   string
}

func send(t *testing.T, r *http.Request) answered {
	t.Helper()
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answered{res.StatusCode, res.Header, string(body)}
}

func get(t *testing.T, url string) answered {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	return send(t, r)
}

func (a answered) wants(t *testing.T, what string, status int, parts ...string) {
	t.Helper()
	if a.status != status {
		t.Errorf("%s: %d, want %d", what, a.status, status)
	}
	for _, part := range parts {
		if !strings.Contains(a.body, part) {
			t.Errorf("%s: the page lacks %q:\n%.3000s", what, part, a.body)
		}
	}
}
