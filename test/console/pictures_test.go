package console

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/redisson"
)

var pictures = flag.String("pictures", "", "write the pictures of the documents into this `folder`")

// look is how a page is looked at.
type look struct {
	name          string
	width, height int64
	scale         float64
	dark          bool
}

func (l look) emulate(t *testing.T, ctx context.Context) {
	t.Helper()
	scheme := "light"
	if l.dark {
		scheme = "dark"
	}
	run(t, ctx, "look", chromedp.EmulateViewport(l.width, l.height, chromedp.EmulateScale(l.scale)),
		command(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}}))
}

var looks = []look{
	{"light", 1120, 700, 1.5, false},
	{"dark", 1120, 700, 1.5, true},
	{"phone-light", 390, 780, 2, false},
	{"phone-dark", 390, 780, 2, true},
}

// axe is what looks for what keeps people from using a page. Without it, nobody looks, or the test fails if it is required.
func axe(t *testing.T) string {
	t.Helper()
	source, err := os.ReadFile("out/package/axe.min.js")
	if err != nil && slices.Contains(strings.Split(os.Getenv("LATCHKEY_REQUIRE"), ","), "axe") {
		t.Fatal("LATCHKEY_REQUIRE names axe, and make console-test has not fetched it: ", err)
	}
	return string(source)
}

// accessible has axe look at a page that is shown.
func accessible(t *testing.T, ctx context.Context, name, axe string) {
	t.Helper()
	if axe == "" {
		return
	}
	const look = `;window.found = null; axe.run().then(r => { window.found = r.violations.map(v => v.id + ": " + v.nodes[0].html).join("; ") || "nothing" }); true`
	ask(t, ctx, name, chromedp.Evaluate[bool](axe+look))
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		switch found := ask(t, ctx, name, chromedp.Evaluate[string](`window.found || ""`)); {
		case found == "nothing":
			return
		case found != "":
			t.Errorf("axe says of %s: %s", name, found)
			return
		case time.Now().After(end):
			t.Fatalf("axe does not say anything of %s", name)
		}
	}
}

// Every page can be read on a wide screen and on a phone: nothing is wider than the window, in light and in dark, and axe finds nothing. With
// -pictures, the pages are kept.
func TestPictures(t *testing.T) {
	ctx := browser(t)
	complaints(t, ctx)
	registry := guard.Must(guard.NewRegistry())
	w := newWorld(t, registry)
	w.shop(t, registry)
	axe := axe(t)
	for _, l := range looks {
		l.emulate(t, ctx)
		for _, page := range []struct{ name, at, ready string }{
			{"locks", "", `tr[id]`}, {"lock", "lock?key=order:42", "#free"}, {"free", "free?key=order:42", "#do-free"}, {"guards", "guards", "table.guards"}, {"switch", "switch?guard=invoice.pay", "#do-switch"}, {"find", "find", "#what"},
			{"frees", "frees", "table.people"},
		} {
			run(t, ctx, page.name+" "+l.name, chromedp.Navigate(w.url+page.at), chromedp.WaitVisible(page.ready))
			if ask(t, ctx, page.name, chromedp.Evaluate[bool](`document.documentElement.scrollWidth > document.documentElement.clientWidth`)) {
				t.Errorf("%s is wider than the window (%s)", page.name, l.name)
			}
			accessible(t, ctx, page.name+" "+l.name, axe)
			w.picture(t, ctx, page.name+"-"+l.name+".png")
		}
	}
}

// names of 500 bytes, as some have them in keys.
var names = []string{strings.Repeat("the-quick-brown-fox:", 25), strings.Repeat("订单：库存锁", 28)[:500-2], strings.Repeat("طلب العميل ", 25), strings.Repeat("🔒ग्राहक ", 20)}

// The list is of use with few locks, many, and more than are kept, and names as long as they come leave the columns and the header as they are.
func TestListsAreReadable(t *testing.T) {
	ctx := browser(t)
	complaints(t, ctx)
	for _, list := range []struct {
		name  string
		locks int
		names []string
	}{{"3", 3, nil}, {"1000", 1000, nil}, {"50000", 50_000, nil}, {"scripts", 0, names}} {
		w := newWorld(t, nil)
		w.fill(t, list.locks, list.names)
		for _, l := range []look{{"1400-light", 1400, 800, 1, false}, {"1400-dark", 1400, 800, 1, true}, {"390-light", 390, 780, 2, false}, {"390-dark", 390, 780, 2, true}} {
			l.emulate(t, ctx)
			run(t, ctx, list.name, chromedp.Navigate(w.url), chromedp.WaitVisible(`tr[id]`), shows("#link", "live"), shows(".status", "Read at"))
			w.picture(t, ctx, "list-"+list.name+"-"+l.name+".png")
			for what, wrong := range map[string]string{
				"the page is wider than the window": `document.documentElement.scrollWidth > document.documentElement.clientWidth`,
				"the header has two rows":           `document.querySelector(".masthead").clientHeight > 70`,
				"a row has grown":                   `[...document.querySelectorAll("tr[id]")].some(r => r.clientHeight > (innerWidth < 500 ? 190 : 90))`,
				"a key is not cut":                  `[...document.querySelectorAll("tr[id] .key")].some(k => k.clientHeight > 60)`,
			} {
				if ask(t, ctx, what, chromedp.Evaluate[bool](wrong)) {
					t.Errorf("%s locks, %s: %s", list.name, l.name, what)
				}
			}
		}
	}
}

// fill writes locks that are held for an hour, some of them waited for.
func (w *world) fill(t *testing.T, locks int, names []string) {
	t.Helper()
	pipe := w.redis.Client(t).Pipeline()
	for i := range locks {
		names = append(names, fmt.Sprintf("order:%d", 10_000+i))
	}
	for i, key := range names {
		client := fmt.Sprintf("6ba7b810-9dad-41d1-80b4-%012d", i%40)
		pipe.HSet(t.Context(), key, fmt.Sprintf("%s:%d", client, 7_326_253_288_574_156_801+i), 1)
		pipe.PExpire(t.Context(), key, time.Hour)
		if i%7 == 1 {
			for n := range i%5 + 1 {
				pipe.RPush(t.Context(), "redisson_lock_queue:{"+key+"}", fmt.Sprintf("%s:%d", client, n))
			}
		}
		if i < 4 {
			pipe.HSet(t.Context(), "latchkey_client:"+client, "who", `{"name":"orders-`+key[:min(len(key), 8)]+strings.Repeat("-long", 8)+`","host":"node-3.eu.example","pid":71}`)
		}
	}
	if _, err := pipe.Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func (w *world) picture(t *testing.T, ctx context.Context, name string) {
	t.Helper()
	if *pictures == "" {
		return
	}
	run(t, ctx, name, chromedp.Sleep(1200*time.Millisecond))
	png := ask(t, ctx, name, chromedp.CaptureScreenshot())
	if err := os.WriteFile(filepath.Join(*pictures, name), png, 0o644); err != nil {
		t.Fatal(err)
	}
}

// shop is some locks as a shop has them.
func (w *world) shop(t *testing.T, registry *guard.Registry) {
	t.Helper()
	names := []string{"orders-7f9c", "orders-b21d", "stock-5d88", "billing-c044"}
	clients := make([]*redisson.Client, len(names))
	for i, name := range names {
		clients[i] = w.client(t, name)
	}
	for i, key := range []string{"order:42", "order:57", "stock:sku-1189", "invoice:2031", "customer:8812", "report:daily"} {
		hold(t, clients[i%len(clients)], key)
	}
	w.wait(t, clients[1].Lock("order:42"), clients[2].Lock("order:42"))
	hold(t, clients[0], "order:9")
	if ok, err := clients[3].Free(t.Context(), redisson.Freed{Key: "order:9", Who: "ann", Reason: "it hangs, ticket 7"}); !ok || err != nil {
		t.Fatalf("Free = %v, %v", ok, err)
	}
	fair := clients[3].FairLock("till:3")
	held, err := fair.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = fair.Unlock(held) })
	w.wait(t, clients[0].FairLock("till:3"), clients[1].FairLock("till:3"))
	w.guards(t, registry, clients[0])
}

// wait has locks waited for until the test ends.
func (w *world) wait(t *testing.T, locks ...*redisson.Lock) {
	for _, l := range locks {
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			if held, err := l.Lock(ctx); err == nil {
				_ = l.Unlock(held)
			}
		}()
		t.Cleanup(func() { cancel(); <-ended })
	}
}

type order struct{ ID string }

// guards makes two guards and some calls of them.
func (w *world) guards(t *testing.T, registry *guard.Registry, c *redisson.Client) {
	t.Helper()
	work := func(ctx context.Context, o order) (string, error) {
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
		}
		return o.ID, nil
	}
	settle := guard.Must(guard.Func(guard.Must(guard.New(c, guard.In(registry), guard.Name("order.settle"), guard.Key("order:#{req.ID}"), guard.Wait(50*time.Millisecond), guard.MaxHold(time.Minute))), work))
	pay := guard.Must(guard.Func(guard.Must(guard.New(c, guard.In(registry), guard.Name("invoice.pay"), guard.Key("invoice:#{req.ID}"), guard.Wait(2*time.Second), guard.Switchable())), work))
	for _, id := range []string{"1", "2", "3", "42", "4", "5"} {
		_, _ = settle(t.Context(), order{id}) // 42 is busy
		if _, err := pay(t.Context(), order{id}); err != nil {
			t.Fatal(err)
		}
	}
}
