package console

import (
	"fmt"
	"html"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/lock/memlock"
	"github.com/latchkey-go/latchkey/middleware"
	"github.com/latchkey-go/latchkey/redisson"
)

// hostile are keys that somebody may have put into Redis to harm whoever looks.
var hostile = []string{
	"<script>alert(1)</script>", `"><img src=x onerror=alert(1)>`, "' onmouseover='alert(1)", "javascript:alert(1)", "{{.}}", "a\x00b\x1b[31m",
	"\xff\xfe broken", "moc.elpmaxe\u202etxt", "zero\u200bwidth", "line\nfeed\r", "data: x\n\nevent: y", strings.Repeat("long/", 2048), "../../etc", "?key=&ref=#", "%00%2e", "🔑", " ", "</title>",
}

// Keys of all bytes are shown so that they can be seen, break nothing, and lead to their own pages.
func TestHostileKeys(t *testing.T) {
	for _, opts := range [][]Option{nil, {ShowKeys(Whole)}} {
		f := newFake()
		for i, key := range hostile {
			f.put(heldLock(key, fmt.Sprintf("%s:%d", clientA, i)))
		}
		s := serve(t, f, opts...)
		list := get(t, s.URL+"/")
		list.wants(t, "list", http.StatusOK)
		checkPage(t, "list", list.body)
		links := lockLinks(list.body)
		if len(links) != len(hostile) {
			t.Fatalf("%d links for %d keys", len(links), len(hostile))
		}
		ids := map[string]bool{}
		for _, link := range links {
			a := get(t, s.URL+"/"+link)
			a.wants(t, link, http.StatusOK, "holds it")
			checkPage(t, link, a.body)
			for i := range hostile {
				if id := fmt.Sprintf("%s:%d<", clientA, i); strings.Contains(a.body, id) {
					ids[id] = true
				}
			}
		}
		if len(ids) != len(hostile) {
			t.Errorf("the links lead to %d locks, want %d: %v", len(ids), len(hostile), ids)
		}
	}
}

func lockLinks(page string) (links []string) {
	for _, part := range strings.Split(page, `href="lock?`)[1:] {
		link, _, _ := strings.Cut(part, `"`)
		links = append(links, "lock?"+html.UnescapeString(link))
	}
	return links
}

// checkPage looks for what a page must not have, whatever the keys are.
func checkPage(t *testing.T, what, page string) {
	t.Helper()
	for _, bad := range []string{"<script>", "<img", " onmouseover='", "\x00", "\x1b", "\xff", "\u202e", "\u200b", "javascript:alert(1)\"", "</title></title>"} {
		if strings.Contains(page, bad) {
			t.Errorf("%s has %q in it", what, bad)
		}
	}
	if strings.Count(page, "<script") != 1 || strings.Count(page, "</title>") != 1 {
		t.Errorf("%s: %d scripts and %d titles", what, strings.Count(page, "<script"), strings.Count(page, "</title>"))
	}
}

// Without ShowKeys, no page, link or filter tells more of a key than its beginning.
func TestKeysAreNotShown(t *testing.T) {
	const key = "order:secret-customer"
	for _, opt := range []Option{ShowKeys(nil), AllowFree(allow)} {
		s := serve(t, newFake(heldLock(key, clientA+":1")), opt)
		list := get(t, s.URL+"/")
		list.wants(t, "list", http.StatusOK, "order:…")
		link := lockLinks(list.body)[0]
		for _, page := range []string{"", link, strings.Replace(link, "lock", "free", 1), "?q=order"} {
			if a := get(t, s.URL+"/"+page); strings.Contains(a.body, "secret") {
				t.Errorf("%s shows the key:\n%s", page, a.body)
			}
		}
		get(t, s.URL+"/"+link).wants(t, link, http.StatusOK, "order:…", "holds it")
		for query, want := range map[string]string{"?q=secret": "No lock matches", "?q=order": "order:…", "?q=" + clientA: "order:…"} {
			get(t, s.URL+"/"+query).wants(t, query, http.StatusOK, want)
		}
		// Who knows the key already finds its lock, and the link that leads there does not tell it either.
		a := paste(t, s.URL, "what", key)
		if to := a.header.Get("Location"); a.status != http.StatusSeeOther || to != link {
			t.Errorf("pasted: %d %s, want %s", a.status, to, link)
		}
		// The link of another process is none.
		elsewhere := serve(t, newFake(heldLock(key, clientA+":1")), opt)
		get(t, elsewhere.URL+"/"+link).wants(t, "link", http.StatusNotFound, "another process")
	}
}

func TestShowKeysInPart(t *testing.T) {
	show := func(key string) string { return strings.ReplaceAll(key, "secret", "******") }
	s := serve(t, newFake(heldLock("order:secret", clientA+":1"), heldLock("plain", clientA+":2")), ShowKeys(show))
	a := get(t, s.URL+"/")
	a.wants(t, "list", http.StatusOK, "order:******", "plain", `href="lock?key=plain"`, `href="lock?ref=`)
	if strings.Contains(a.body, "secret") {
		t.Errorf("the list shows the key:\n%s", a.body)
	}
}

func paste(t *testing.T, base string, pairs ...string) answered {
	t.Helper()
	form := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		form.Set(pairs[i], pairs[i+1])
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, base+"/find", strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return send(t, r)
}

// What was pasted leads to the lock, or to all that a holder has.
func TestFind(t *testing.T) {
	s := serve(t, newFake(heldLock("order:42", clientA+":7"), heldLock("order:43", clientB+":1")), ShowKeys(Whole))
	for _, tt := range []struct{ what, as, want string }{
		{"order:42", "", "lock?key=order%3A42"},
		{"order:42\r\n", "", "lock?key=order%3A42"},
		{` order:42`, "", "lock?key=+order%3A42"},
		{`"a\x00b"`, "", "lock?key=a%00b"},
		{`"`, "", "lock?key=%22"},
		{clientA + ":7", "", "./?q=" + url.QueryEscape(clientA+":7")},
		{clientA + ":7:write\n", "", "./?q=" + url.QueryEscape(clientA+":7")},
		{clientA, "", "./?q=" + clientA},
		{clientA, "key", "lock?key=" + clientA},
		{"GET /a", "key", "lock?key=GET+%2Fa"},
	} {
		if a := paste(t, s.URL, "what", tt.what, "as", tt.as); a.status != http.StatusSeeOther || a.header.Get("Location") != tt.want {
			t.Errorf("%q as %q: %d %s, want %s", tt.what, tt.as, a.status, a.header.Get("Location"), tt.want)
		}
	}
	a := get(t, s.URL+"/?q="+url.QueryEscape(clientA+":7"))
	a.wants(t, "holder", http.StatusOK, "order:42")
	if strings.Contains(a.body, "order:43") {
		t.Error("the holder's list has another one's lock")
	}
	paste(t, s.URL, "what", " ").wants(t, "nothing", http.StatusUnprocessableEntity, "Paste something")
	paste(t, s.URL, "what", "GET /a").wants(t, "request", http.StatusOK, "knows no guards")
}

// A request is explained by the guards of the program.
func TestFindByRequest(t *testing.T) {
	reg := guard.Must(guard.NewRegistry())
	prepare(t, reg)
	h, err := newHandler(newFake(), reg, []Option{quiet, ShowKeys(Whole)})
	if err != nil {
		t.Fatal(err)
	}
	s := serveHandler(t, h)
	for _, tt := range []struct {
		request string
		want    []string
	}{
		{"POST /transfers\n\n{\"from\":\"alice\",\"to\":\"bob\"}", []string{"POST /transfers", ">transfer<", "account:alice", "account:bob", "is free now"}},
		{"POST https://bank.example/transfers?a=b\nContent-Type: application/json\n{\"from\":\"alice\",\"to\":\"bob\"}", []string{"account:alice"}},
		{"POST /orders/7/settle\npath.id: 7", []string{">settle<", "order:7"}},
		{"POST /orders/7/settle", []string{"No guard takes a key", "it needs path.id: give it as a line"}},
		{"GET /orders/7/settle\npath.id: 7", []string{"is for POST only"}},
		{"POST /x\nX-Tenant: acme\nCookie: session=s1\n\n", []string{"t:acme:s1"}},
	} {
		paste(t, s, "what", tt.request).wants(t, tt.request, http.StatusOK, tt.want...)
	}
	paste(t, s, "what", "GET http://[", "as", "request").wants(t, "broken", http.StatusUnprocessableEntity, "no address")
}

// Tools that speak HTTP/2 show headers in lower case, in which some are called as facts are.
func TestPastedHeadersAreHeadersInLowerCaseToo(t *testing.T) {
	reg := guard.Must(guard.NewRegistry())
	g := guard.Must(guard.New(memlock.New(), guard.In(reg), guard.Name("host"), guard.Key("#{host}:#{cookie.session}")))
	guard.Must(middleware.New(g))
	h, err := newHandler(newFake(), reg, []Option{quiet, ShowKeys(Whole)})
	if err != nil {
		t.Fatal(err)
	}
	s := serveHandler(t, h)
	for _, headers := range []string{
		"Host: Bank.example.:8443\nCookie: session=s1", "host: bank.example:8443\ncookie: session=s1; theme=dark",
		"host: bank.example\ncookie: {\"session\": \"s1\"}", "host: bank.example\ncookie.session: s1",
	} {
		paste(t, s, "what", "GET /x\n"+headers).wants(t, headers, http.StatusOK, ">bank.example:s1<")
	}
	paste(t, s, "what", "GET /x\nHost: bank.example\nCookie: session=s1; session=s2").wants(t, "two cookies", http.StatusOK, "No guard takes a key")
}

// The page of the guards says what each declares and how its calls ended.
func TestGuardsPage(t *testing.T) {
	reg := guard.Must(guard.NewRegistry())
	prepare(t, reg)
	h, err := newHandler(newFake(), reg, []Option{quiet})
	if err != nil {
		t.Fatal(err)
	}
	s := serveHandler(t, h)
	get(t, s+"/guards").wants(t, "guards", http.StatusOK, "settle", "order:#{path.id}; wait=2s; methods=POST", "order:&lt;string&gt;", "console/guards_for_test.go:")
	get(t, serve(t, newFake()).URL+"/guards").wants(t, "without a registry", http.StatusOK, "without a registry")
}

// The page of a lock says which guards take it.
func TestLockNamesItsGuards(t *testing.T) {
	reg := guard.Must(guard.NewRegistry())
	prepare(t, reg)
	h, err := newHandler(newFake(heldLock("order:7", clientA+":1")), reg, []Option{quiet})
	if err != nil {
		t.Fatal(err)
	}
	get(t, serveHandler(t, h)+"/lock?key=order:7").wants(t, "lock", http.StatusOK, `<a href="guards#g-settle">settle</a>`)
}

// Ten thousand locks make a page that can be used.
func TestManyLocks(t *testing.T) {
	f := newFake()
	for i := range 10_000 {
		f.put(heldLock(fmt.Sprintf("order:%05d", i), fmt.Sprintf("%s:%d", clientA, i)))
	}
	s := serve(t, f, ShowKeys(Whole))
	a := get(t, s.URL+"/")
	a.wants(t, "list", http.StatusOK, "10,000 locks", "… and 9,800 more")
	if n := len(lockLinks(a.body)); n != firstPage {
		t.Errorf("%d rows, want %d", n, firstPage)
	}
	get(t, s.URL+"/?q=order:0999").wants(t, "filtered", http.StatusOK, "10 of 10,000", "order:09999")
	if n := len(lockLinks(get(t, s.URL+"/?all=1").body)); n != mostShown {
		t.Errorf("%d rows at once, want %d", n, mostShown)
	}
}

func TestWhy(t *testing.T) {
	named := heldLock("a", clientA+":1")
	named.Holders[0].Who = redisson.Identity{Name: "orders-7f9c", Host: "node-3", PID: 71}
	named.Listeners = 2
	queued := heldLock("a", clientA+":1")
	queued.Queue, queued.QueueLength, queued.Listeners = []redisson.Waiter{{ID: clientB + ":1"}, {ID: clientB + ":2"}}, 2, 1
	fair := queued
	fair.Queue = []redisson.Waiter{{ID: clientB + ":1", Until: time.Now().Add(time.Minute)}, {ID: clientB + ":2", Until: time.Now().Add(time.Hour)}}
	if plain, other := kindOf(&queued), kindOf(&fair); plain != "plain" || other != "fair" {
		t.Errorf("a lock that is waited for is a %s, and a fair one a %s", plain, other)
	}
	readers := redisson.Object{Key: "a", Type: redisson.TypeReadWrite, Mode: "read", HolderCount: 3, Holders: []redisson.Holder{{ID: clientA + ":1"}, {ID: clientB + ":1"}, {ID: clientB + ":2"}}}
	for _, tt := range []struct {
		o    redisson.Object
		want string
	}{
		{redisson.Object{}, "Nobody holds it: there is no such key in Redis."},
		{named, "orders-7f9c (on node-3, process 71) holds it. Unless it is renewed, it ends by itself when its lease is over. 2 processes wait for it."},
		{readers, "0b5d1d0c…:1 and 2 others hold it for reading. "},
		{redisson.Object{Type: redisson.TypeOther}, "it is no lock"},
		{redisson.Object{Type: redisson.TypeSemaphore, Permits: 1}, "1 free permit."},
		{redisson.Object{Type: redisson.TypeLock, QueueLength: 1}, "the first in line may take it"},
		{queued, "2 processes wait for it."},
		{fair, "2 wait in its queue."},
	} {
		now := time.Now()
		s := &lockState{object: tt.o, read: now, seen: map[string]time.Time{}}
		for _, h := range tt.o.Holders {
			s.seen[h.ID] = now
		}
		if got := why(s); !strings.Contains(got, tt.want) {
			t.Errorf("why = %q, want %q in it", got, tt.want)
		}
	}
}

func TestSpanText(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", 59_900 * time.Millisecond: "59s", time.Minute: "1m 00s", time.Hour - time.Second: "59m 59s",
		2*time.Hour + 5*time.Minute: "2h 05m", 76 * time.Hour: "3d 4h",
	} {
		if got := spanText(d); got != want {
			t.Errorf("spanText(%v) = %s, want %s", d, got, want)
		}
	}
}

// Without JavaScript the page comes again by itself only if that is wanted, and says how to stop it.
func TestReloadWithoutJavaScript(t *testing.T) {
	s := serve(t, newFake())
	a := get(t, s.URL+"/?q=a")
	a.wants(t, "list", http.StatusOK, `<a href="./?q=a&amp;every=10">every 10 s</a>`, `<a href="./?q=a">Reload</a>`)
	if strings.Contains(a.body, "http-equiv") {
		t.Error("the page comes again by itself")
	}
	get(t, s.URL+"/?q=a&every=10").wants(t, "list", http.StatusOK, `<noscript><meta http-equiv="refresh" content="10"></noscript>`, `<a href="./?q=a">stop</a>`)
}
