package console

import (
	"context"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/lock"
)

// Two clients contend; the page that is open shows it; somebody frees the lock; its holder is told, and the other one gets it.
func TestSomebodyFreesALock(t *testing.T) {
	ctx := browser(t)
	complaints(t, ctx)
	w := newWorld(t, nil)
	run(t, ctx, "nothing is locked", chromedp.Navigate(w.url), shows("#live", "Nothing is locked"), shows("#link", "live"))

	first, second := w.client(t, "orders-7f9c"), w.client(t, "orders-b21d")
	held := hold(t, first, "order:42")
	run(t, ctx, "the lock appears by itself", shows("tbody", "order:42"), shows("tbody .who", "orders-7f9c"))
	got := make(chan error, 1)
	go func() {
		l := second.Lock("order:42")
		h, err := l.Lock(t.Context())
		got <- err
		if err == nil {
			<-t.Context().Done()
			_ = l.Unlock(h)
		}
	}()
	run(t, ctx, "somebody waits", shows(`td[data-label="waiting"]`, "1"))

	run(t, ctx, "its page", chromedp.Click(`//a[contains(., "order:42")]`), chromedp.WaitVisible("#free"), shows("#why", "orders-7f9c"), shows("#why", "1 process waits for it"))
	run(t, ctx, "the confirmation", chromedp.Click("#free"), chromedp.WaitVisible("#do-free"),
		chromedp.SendKeys("#name", "Ada"), chromedp.SendKeys("#reason", "stuck since noon"))
	if held.Err() != nil {
		t.Fatal("the lock is lost before anybody has confirmed anything")
	}
	clicked := time.Now()
	run(t, ctx, "freed", chromedp.Click("#do-free"))
	select {
	case <-held.Done():
	case <-time.After(5 * time.Second):
		t.Fatal("the holder was not told")
	}
	if cause := context.Cause(held); !errors.Is(cause, lock.ErrLost) {
		t.Errorf("the holder was told %v, want ErrLost", cause)
	} else {
		t.Logf("the holder was told %v after the click: %v", time.Since(clicked).Round(time.Millisecond), cause)
	}
	if err := soon(t, "the lock of the other one", got); err != nil {
		t.Error(err)
	}
	if f := soon(t, "the account", w.freed); f.Key != "order:42" || f.Who != "Ada" || f.Reason != "stuck since noon" || f.Err != nil {
		t.Errorf("account %+v", f)
	}
	run(t, ctx, "the next holder", chromedp.WaitVisible("#free"), shows("#why", "orders-b21d"))
}

// Somebody switches a guard off, for a short time. The page of the guards says so, and that it is over; what is open on it stays open.
func TestSomebodySwitchesAGuard(t *testing.T) {
	ctx := browser(t)
	complaints(t, ctx)
	registry := guard.Must(guard.NewRegistry())
	w := newWorld(t, registry)
	w.guards(t, registry, w.client(t, ""))
	const row = `tr[id="g-invoice.pay"]`
	open := chromedp.Evaluate[bool](fmt.Sprintf("document.querySelector('%s details').open", row))
	run(t, ctx, "guards", chromedp.Navigate(w.url+"guards"), shows("#link", "live"), shows(row+" .mode", "on"),
		chromedp.Click(row+" summary"), chromedp.WaitVisible(row+" dl"))
	if ask(t, ctx, "switches", chromedp.Evaluate[int](`document.querySelectorAll(".switch").length`)) != 1 {
		t.Error("not only the guard that is switchable can be switched")
	}
	if err := registry.Switch("invoice.pay", guard.Shadow); err != nil {
		t.Fatal(err)
	}
	run(t, ctx, "switched by the program", shows(row+" .mode", "shadow"))
	if !ask(t, ctx, "details", open) {
		t.Error("an update has closed what was open")
	}
	run(t, ctx, "the form", chromedp.Click(row+" .switch"), chromedp.WaitVisible("#do-switch"), chromedp.Click(`input[value="off"]`),
		evaluate(`document.getElementById("for").value = "4s"`), chromedp.SendKeys("#name", "Ada"), chromedp.SendKeys("#reason", "stuck since noon"), chromedp.Click("#do-switch"))
	if s := soon(t, "the account", w.switched); s.Guard != "invoice.pay" || s.Mode != guard.Off || s.Before != guard.Shadow || s.Who != "Ada" || s.Reason != "stuck since noon" || s.Until.Sub(s.Time) != 4*time.Second {
		t.Errorf("account %+v", s)
	}
	run(t, ctx, "switched off", shows(row+" .mode", "by Ada, until "), shows(row+" .mode", ": stuck since noon"))
	if s := soon(t, "the end", w.switched); !s.Ended || s.Mode != guard.Shadow {
		t.Errorf("account %+v", s)
	}
	run(t, ctx, "switched back", shows(row+" .mode", "shadow"))
}

// The guard of a lock, and the locks of a guard, are a link away.
func TestGuardAndItsLocks(t *testing.T) {
	ctx := browser(t)
	complaints(t, ctx)
	registry := guard.Must(guard.NewRegistry())
	w := newWorld(t, registry)
	c := w.client(t, "")
	hold(t, c, "order:42")
	hold(t, c, "stock:1")
	w.guards(t, registry, c)
	run(t, ctx, "guards", chromedp.Navigate(w.url+"guards"), chromedp.Click(`tr[id="g-order.settle"] .keys a`), shows("#count", "1 of 2 locks"),
		chromedp.Click(`//a[contains(., "order:42")]`), chromedp.WaitVisible("#why"), chromedp.Click(`dd a[href^="guards#"]`), chromedp.WaitVisible(`tr[id="g-order.settle"]:target`))
}

// A page that is paused asks nothing more, and goes on when it is told to.
func TestPause(t *testing.T) {
	ctx := browser(t)
	complaints(t, ctx)
	w := newWorld(t, nil)
	c := w.client(t, "")
	run(t, ctx, "live", chromedp.Navigate(w.url), shows("#link", "live"), chromedp.Click("#pause"), shows("#link", "paused"))
	hold(t, c, "order:42")
	run(t, ctx, "paused", chromedp.Sleep(3*time.Second))
	if text := ask(t, ctx, "paused", chromedp.Text("#live")); strings.Contains(text, "order:42") {
		t.Errorf("the page that is paused goes on:\n%s", text)
	}
	run(t, ctx, "on again", chromedp.Click("#pause"), shows("tbody", "order:42"))
}

// An outage stops the clocks, and says of when what is shown was true; once Redis is back, the page is live within moments.
func TestOutage(t *testing.T) {
	ctx := browser(t)
	complaints(t, ctx)
	w := newWorld(t, nil)
	hold(t, w.client(t, ""), "order:42")
	run(t, ctx, "live", chromedp.Navigate(w.url), shows("tbody", "order:42"), shows("#link", "live"))
	for page, selector := range map[string]string{w.url: `td[data-label="lease"]`, w.url + "lock?key=order:42": "dd time"} {
		run(t, ctx, "the page", chromedp.Navigate(page), shows("#link", "live"))
		w.redis.Pause(t)
		run(t, ctx, "away", shows("#link", "as of "), shows(".status", "answer"))
		clock := chromedp.Text(selector)
		before := ask(t, ctx, "clock", clock)
		run(t, ctx, "a while", chromedp.Sleep(2500*time.Millisecond))
		if after := ask(t, ctx, "clock", clock); after != before {
			t.Errorf("%s: a clock runs from %s to %s on what was read before the outage", page, before, after)
		}
		w.redis.Resume(t)
		back := time.Now()
		run(t, ctx, "back", shows("#link", "live"))
		if took := time.Since(back); took > 6*time.Second {
			t.Errorf("%s is live %v after Redis", page, took)
		}
	}
}

// The keyboard alone leads to a lock, and the live view does not take the focus away.
func TestKeyboard(t *testing.T) {
	ctx := browser(t)
	complaints(t, ctx)
	w := newWorld(t, nil)
	c := w.client(t, "")
	hold(t, c, "order:1")
	hold(t, c, "order:3")
	run(t, ctx, "list", chromedp.Navigate(w.url), shows("tbody", "order:3"), shows("#link", "live"))
	focused := func() string {
		return ask(t, ctx, "focus", chromedp.Evaluate[string](`document.activeElement.textContent.trim()`))
	}
	for range 30 {
		if run(t, ctx, "tab", chromedp.KeyEvent(kb.Tab)); focused() == "order:3" {
			break
		}
	}
	if text := focused(); text != "order:3" {
		t.Fatalf("thirty tabs do not reach the lock; they reach %q", text)
	}
	hold(t, c, "order:2")
	run(t, ctx, "a row comes in between", shows("tbody", "order:2"))
	if text := focused(); text != "order:3" {
		t.Errorf("the focus went to %q", text)
	}
	run(t, ctx, "enter", chromedp.KeyEvent(kb.Enter), chromedp.WaitVisible("#why"), shows("h1", "order:3"))
}

// Without JavaScript, the list, the lock's page and the confirmation work.
func TestWithoutJavaScript(t *testing.T) {
	ctx := browser(t)
	registry := guard.Must(guard.NewRegistry())
	w := newWorld(t, registry)
	held := hold(t, w.client(t, "orders-7f9c"), "order:42")
	run(t, ctx, "no scripts", command(emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true}), chromedp.Navigate(w.url))
	run(t, ctx, "list", chromedp.WaitVisible(`//noscript//a[text()="Reload"]`), chromedp.WaitNotVisible("#pause"), chromedp.Click(`//a[contains(., "order:42")]`))
	run(t, ctx, "lock", chromedp.WaitVisible("#free"), chromedp.Click("#free"))
	run(t, ctx, "confirm", chromedp.WaitVisible("#do-free"), chromedp.SendKeys("#name", "Ada"),
		chromedp.SendKeys("#reason", "stuck"), chromedp.Click("#do-free"))
	soon(t, "the end of the lock", held.Done())
	soon(t, "the account", w.freed)

	w.guards(t, registry, w.client(t, ""))
	run(t, ctx, "guards", chromedp.Navigate(w.url+"guards"), chromedp.Click(".switch"), chromedp.WaitVisible("#do-switch"), chromedp.Click(`input[value="shadow"]`),
		chromedp.SendKeys("#name", "Ada"), chromedp.SendKeys("#reason", "stuck"), chromedp.Click("#do-switch"), shows(".mode", "by Ada, until "))
	soon(t, "the account", w.switched)
}

// forged is a page that sends a form to the console as soon as it is loaded.
var forged = template.Must(template.New("").Parse(`<!doctype html><title>forged</title><form method="post" action="{{.To}}">
{{range $name, $values := .Form}}{{range $values}}<input name="{{$name}}" value="{{.}}">{{end}}{{end}}</form><script>document.forms[0].submit()</script>`))

// A page of another origin can't free a lock, not even with the fields of a form that was really shown: not from another port of
// the same host, which is the same site, and not from another host.
func TestForgedForm(t *testing.T) {
	ctx := browser(t)
	w := newWorld(t, nil)
	held := hold(t, w.client(t, ""), "order:42")
	var to string
	form := url.Values{"name": {"Mallory"}, "reason": {"because"}}
	evil := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/" {
			http.NotFound(rw, r)
			return
		}
		_ = forged.Execute(rw, map[string]any{"To": to, "Form": form})
	}))
	defer evil.Close()
	for _, origin := range []string{evil.URL, strings.Replace(evil.URL, "127.0.0.1", "localhost", 1)} {
		run(t, ctx, "the real form", chromedp.Navigate(w.url+"free?key=order:42"), chromedp.WaitVisible("#do-free"))
		fields := ask(t, ctx, "its fields", chromedp.Evaluate[map[string]string](`Object.fromEntries([...document.querySelectorAll("input[type=hidden]")].map((e) => [e.name, e.value]))`))
		if fields["ticket"] == "" {
			t.Fatalf("the form has %v", fields)
		}
		for name, value := range fields {
			form.Set(name, value)
		}
		to = w.url + "free"
		run(t, ctx, "forged from "+origin, chromedp.Navigate(origin+"/"), shows("h1", "Refused"), shows(".lead", "sent by a page of another site"))
		if held.Err() != nil {
			t.Fatalf("a page of %s freed the lock", origin)
		}
	}
	// The same form from the console's own page is good: what refused it above was where it came from.
	run(t, ctx, "sent by the console's page", chromedp.Navigate(w.url+"free?key=order:42"), chromedp.WaitVisible("#do-free"),
		evaluate(fmt.Sprintf(`{const f = document.getElementById("confirm"); f.elements.ticket.value = %q; f.elements.name.value = "Ada"; f.elements.reason.value = "test"; f.submit()}`, form.Get("ticket"))))
	soon(t, "the end of the lock", held.Done())
}

// No page of another site shows the console in a frame, where a visitor could be made to click.
func TestNoFrames(t *testing.T) {
	ctx := browser(t)
	w := newWorld(t, nil)
	evil := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(rw, `<!doctype html><title>framed</title><iframe src="%s"></iframe>`, w.url)
	}))
	defer evil.Close()
	refused := make(chan struct{})
	once := sync.OnceFunc(func() { close(refused) })
	listen(t, ctx, func(e any) {
		if e, ok := e.(*log.EventEntryAdded); ok && strings.Contains(e.Entry.Text, "frame-ancestors") {
			once()
		}
	})
	run(t, ctx, "framed", command(log.Enable, cdp.Empty{}), chromedp.Navigate(evil.URL))
	soon(t, "the browser's refusal to show the frame", refused)
}

// evaluate has the page do something.
func evaluate(script string) step {
	return func(ctx context.Context, t *chromedp.Target) (void chromedp.Void, err error) {
		_, err = chromedp.Evaluate[any](script+"; 0")(ctx, t)
		return void, err
	}
}
