package console

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/latchkey-go/latchkey/console"
	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/redisson"
)

// chromium is the path of the browser. Without one, the test is skipped, or fails if it is required.
func chromium(t *testing.T) string {
	t.Helper()
	for _, name := range []string{os.Getenv("LATCHKEY_CHROMIUM"), "chromium", "chromium-browser", "google-chrome", "headless-shell"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	if slices.Contains(strings.Split(os.Getenv("LATCHKEY_REQUIRE"), ","), "chromium") {
		t.Fatal("LATCHKEY_REQUIRE names chromium, and there is none on PATH")
	}
	t.Skip("needs Chromium on PATH (LATCHKEY_REQUIRE=chromium makes this a failure)")
	return ""
}

// browser starts one with an empty profile, that ends with the test.
func browser(t *testing.T) context.Context {
	t.Helper()
	opts := []chromedp.ExecAllocatorOption{
		chromedp.ExecPath(chromium(t)), chromedp.UserDataDir(t.TempDir()), chromedp.Headless, chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.NoFirstRun, chromedp.NoDefaultBrowserCheck,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-sync", true), chromedp.Flag("disable-dev-shm-usage", true), chromedp.WSURLReadTimeout(time.Minute),
	}
	ctx, stop := chromedp.NewExecAllocator(context.Background(), opts...)
	t.Cleanup(stop)
	ctx, end := chromedp.NewContext(ctx)
	t.Cleanup(func() { _ = chromedp.Cancel(ctx); end() })
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("Chromium does not start: %v", err)
	}
	return ctx
}

// complaints collects what the browser says against a page: exceptions, and what its policy forbids.
func complaints(t *testing.T, ctx context.Context) {
	t.Helper()
	listen(t, ctx, func(e any) {
		if t.Context().Err() != nil { // the test is over, and its server may be gone
			return
		}
		switch e := e.(type) {
		case *runtime.EventExceptionThrown:
			t.Errorf("exception in the page: %s", e.ExceptionDetails.Text)
		case *log.EventEntryAdded:
			if e.Entry.Level == log.EntryLevelError && !strings.Contains(e.Entry.Text, "status of 4") {
				t.Errorf("the browser complains: %s %s", e.Entry.Text, e.Entry.URL)
			}
		}
	})
}

func listen(t *testing.T, ctx context.Context, f func(e any)) {
	t.Helper()
	if err := chromedp.Listen(ctx, f); err != nil {
		t.Fatal(err)
	}
}

type step = chromedp.Action[chromedp.Void]

// run plays steps in the browser, together for no longer than a while.
func run(t *testing.T, ctx context.Context, what string, steps ...step) {
	t.Helper()
	ask(t, ctx, what, chromedp.Steps(steps...))
}

// ask plays one step that answers something.
func ask[T any](t *testing.T, ctx context.Context, what string, a chromedp.Action[T]) T {
	t.Helper()
	limited, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	v, err := chromedp.Run(limited, a)
	if err != nil {
		page, _ := chromedp.Run(ctx, chromedp.Evaluate[string](`document.body.innerText`))
		t.Fatalf("%s: %v, on the page\n%s", what, err, page)
	}
	return v
}

// shows waits until an element has a text in it, also on the page that comes after this one.
func shows(selector, text string) step {
	has := chromedp.Evaluate[bool](fmt.Sprintf(`(document.querySelector(%q)?.textContent ?? "").includes(%q)`, selector, text))
	return func(ctx context.Context, t *chromedp.Target) (void chromedp.Void, err error) {
		for {
			if ok, err := has(ctx, t); err == nil && ok {
				return void, nil
			}
			select {
			case <-ctx.Done():
				return void, fmt.Errorf("%s does not show %q: %w", selector, text, ctx.Err())
			case <-time.After(50 * time.Millisecond):
			}
		}
	}
}

// command is a step that is a command of the protocol.
func command[P, R any](c cdp.Command[P, R], params P) step {
	return func(ctx context.Context, t *chromedp.Target) (void chromedp.Void, err error) {
		_, err = cdp.Call(ctx, t, c, params)
		return void, err
	}
}

// world is a Redis, its clients, and a console.
type world struct {
	redis    *redistest.Server
	url      string
	freed    chan console.Freed
	switched chan console.Switched
}

func newWorld(t *testing.T, registry *guard.Registry) *world {
	t.Helper()
	w := &world{redis: redistest.Start(t), freed: make(chan console.Freed, 8), switched: make(chan console.Switched, 8)}
	page, err := console.New(w.client(t, ""), registry,
		console.ShowKeys(console.Whole), console.AllowFree(func(*http.Request) error { return nil }), console.AllowSwitch(func(*http.Request) error { return nil }),
		console.OnSwitch(func(_ context.Context, s console.Switched) { w.switched <- s }),
		console.OnFree(func(_ context.Context, f console.Freed) { w.freed <- f }), console.Log(slog.New(slog.NewTextHandler(io.Discard, nil))))
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/ops/locks/", page)
	s := httptest.NewServer(mux)
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() }) // pages are open
	w.url = strings.Replace(s.URL, "127.0.0.1", "localhost", 1) + "/ops/locks/"
	return w
}

// client is one of the world's Redis, with a name if it is not empty.
func (w *world) client(t *testing.T, name string) *redisson.Client {
	t.Helper()
	var opts []redisson.Option
	if name != "" {
		opts = append(opts, redisson.Name(name), redisson.Describe())
	}
	c, err := redisson.New(w.redis.Client(t), opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// hold takes a lock until the test ends or it is given back.
func hold(t *testing.T, c *redisson.Client, key string) context.Context {
	t.Helper()
	l := c.Lock(key)
	held, err := l.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Unlock(held) })
	return held
}

// soon is the first value of a channel, which comes soon.
func soon[T any](t *testing.T, what string, c <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(10 * time.Second):
		t.Fatal(cmp.Or(what, "it") + " did not come")
	}
	return v
}
