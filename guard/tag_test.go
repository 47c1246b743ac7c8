package guard

import (
	"strings"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/lock"
)

func TestParseTag(t *testing.T) {
	tests := []struct {
		tag  string
		spec Spec
	}{
		{"", Spec{}},
		{"order:#{req.ID}", Spec{Key: "order:#{req.ID}"}},
		{" order ; wait = 2s ", Spec{Key: "order", Wait: 2 * time.Second}},
		{"; wait=forever", Spec{Wait: Forever}},
		{"k;wait=0", Spec{Key: "k", zeros: fieldWait}},
		{"k; kind=exclusive", Spec{Key: "k", zeros: fieldKind}},
		{"k; limit=3", Spec{Key: "k", Limit: 3, Kind: lock.Permit}},
		{`;key="a;b"; name="x; y"`, Spec{Key: "a;b", Name: "x; y"}},
		{`k; name="x, skip"`, Spec{Key: "k", Name: "x, skip"}},
		{`; when="a" == req.A; name="x" y`, Spec{When: `"a" == req.A`, Name: `"x" y`}},
		{"; busy=fail; outage=fallback", Spec{Outage: RunFallback, zeros: fieldBusy}},
		{"; hold=1m; waiters=2; args=from, to; methods=POST , PUT; switchable", Spec{
			Hold: time.Minute, Waiters: 2, Args: "from,to", Methods: "POST,PUT", Switchable: true,
		}},
		{"k; limit=3; kind=fair", Spec{Key: "k", Limit: 3, Kind: lock.Fair}},
		{
			";name=a b;when=req.A=='x;y';kind=permit;wait=1s;lease=2s;max-hold=3s;limit=4;busy=skip;outage=run-unlocked",
			Spec{
				Name: "a b", When: "req.A=='x;y'", Kind: lock.Permit, Wait: time.Second, Lease: 2 * time.Second,
				MaxHold: 3 * time.Second, Limit: 4, Busy: Skip, Outage: RunUnlocked,
			},
		},

		// Semicolons inside of holes and conditions, and things that look like holes.
		{"a#{x ?? ';'}b; wait=1s", Spec{Key: "a#{x ?? ';'}b", Wait: time.Second}},
		{`#{x ?? "};"}; wait=1s`, Spec{Key: `#{x ?? "};"}`, Wait: time.Second}},
		{`#{x ?? "\";"}; wait=1s`, Spec{Key: `#{x ?? "\";"}`, Wait: time.Second}},
		{"#{x ?? `\\`}; wait=1s", Spec{Key: "#{x ?? `\\`}", Wait: time.Second}},
		{"#{map(x, {.A; .B})}; wait=1s", Spec{Key: "#{map(x, {.A; .B})}", Wait: time.Second}},
		{"{#{x}}; wait=1s", Spec{Key: "{#{x}}", Wait: time.Second}},
		{"##{; wait=1s", Spec{Key: "##{", Wait: time.Second}},
		{"the name of #{x ?? kind == 'y'}; wait=1s", Spec{Key: "the name of #{x ?? kind == 'y'}", Wait: time.Second}},
		{"it's; wait=1s", Spec{Key: "it's", Wait: time.Second}},
		{"k; when = any(x, {.A; .B}) ; wait=1s", Spec{Key: "k", When: "any(x, {.A; .B})", Wait: time.Second}},

		// A flag has no value.
		{"nightly; one-key", Spec{Key: "nightly", OneKey: true}},
		{"nightly; one-key ; wait=1s", Spec{Key: "nightly", OneKey: true, Wait: time.Second}},

		// What never ends is left to package keyexpr.
		{"#{x; wait=1s", Spec{Key: "#{x; wait=1s"}},
		{"#{'x}; wait=1s", Spec{Key: "#{'x}; wait=1s"}},
		{`#{'x\`, Spec{Key: `#{'x\`}},
	}
	for _, tt := range tests {
		spec, err := parseTag(tt.tag)
		if spec != tt.spec || err != nil {
			t.Errorf("parseTag(%q) = %+v, %v, want %+v", tt.tag, spec, err, tt.spec)
		}
	}
}

func TestParseTagErrors(t *testing.T) {
	tests := []struct{ tag, want string }{
		{"k; wiat=2s", `unknown attribute "wiat", did you mean wait? (at offset 3)`},
		{"k; maxhold=2s", `did you mean max-hold? (at offset 3)`},
		{"k; xyzzy=2s", `there is args, burst, busy, hold, key, kind, lease, levels, limit, max-hold, methods, name, one-key, outage, rate, switchable, wait, waiters, when (at offset 3)`},
		{"k;=2s", `unknown attribute ""`},
		{"k; wait=2", `bad duration "2", want one like 2s or 500ms (at offset 8)`},
		{"k; wait= -2s", `negative duration "-2s" (at offset 9)`},
		{"k; lease=-1ms", `negative duration "-1ms" (at offset 9)`},
		{"k; max-hold=soon", `bad duration "soon"`},
		{"k; kind=fiar", `unknown kind "fiar", did you mean fair? (at offset 8)`},
		{"k; limit=0", `bad limit "0"`},
		{"k; limit=x", `bad limit "x"`},
		{"k; busy=run", `unknown policy "run"`},
		{"k; outage=skipp", `did you mean skip? (at offset 10)`},
		{"k;", `nothing between semicolons or behind the last one (at offset 2)`},
		{"k; ", `nothing between semicolons`},
		{"k;; wait=2s", `nothing between semicolons or behind the last one (at offset 2)`},
		{";", `nothing between semicolons`},
		{"k; wait", `attribute wait has no value, write wait=... (at offset 3)`},
		{"k; wait; lease=2s", `attribute wait has no value`},
		{"k; wait=; lease=2s", `attribute wait has no value`},
		{"k; wait=2s; wait=3s", `attribute wait is given twice (at offset 12)`},
		{"k; one-key=yes", `attribute one-key has no value, write it alone (at offset 3)`},
		{"k; one-key; one-key", `attribute one-key is given twice`},
		{"order:#{req.ID}, wait=2s", `attributes follow a semicolon, not a comma: write ; wait=2s (at offset 15)`},
		{"order:#{req.ID},kind = fair, wait=2s", `write ; kind = fair, wait=2s`},
		{"nightly, one-key", `write ; one-key`},
		{"order:#{req.ID} wait=2s", `attributes follow a semicolon, not a blank: write ; wait=2s (at offset 15)`},
		{"order:#{req.ID}  busy = skip", `write ; busy = skip`},
	}
	for _, tt := range append(tests, strayTags...) {
		_, err := parseTag(tt.tag)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("parseTag(%q): %v, want %s", tt.tag, err, tt.want)
		}
	}
}

// strayTags have what is taken for a semicolon, an equals sign or an attribute.
var strayTags = []struct{ tag, want string }{
	{"order:#{req.ID}；wait=2s", `not "；": write ; wait=2s (at offset 15)`},
	{"order:#{req.ID}，wait=2s", `not "，": write ; wait=2s (at offset 15)`},
	{"order:#{req.ID}\u00a0wait=2s", `not "\u00a0": write ; wait=2s (at offset 15)`},
	{"order:#{req.ID}： wait=2s", `not a blank: write ; wait=2s`},
	{"order:#{req.ID}, Wait=2s", `write ; wait=2s`},
	{"order:#{req.ID} Wait=2s", `write ; wait=2s`},
	{"order:#{req.ID}, WAIT=2s", `write ; wait=2s`},
	{"order:#{req.ID} wait:2s", `write ; wait=2s`},
	{"order:#{req.ID}, wait: 2s", `write ; wait=2s`},
	{"order:#{req.ID}, wait 2s", `write ; wait=2s`},
	{"order:#{req.ID} timeout 2s", `write ; wait=2s`},
	{"a b= wait=2s", `write ; wait=2s`},
	{"order id=,wait=2s", `write ; wait=2s`},
	{"order:#{req.ID} when req.Qty > 5", `write ; when=req.Qty > 5`},
	{"order:#{req.ID}, wait=#{req.A}", `write ; wait=#{req.A}`},
	{"order:#{req.ID} one-key", `write ; one-key`},
	{"order:#{req.ID}, skip", `write ; busy=skip`},
	{"order:#{req.ID}, fair", `write ; kind=fair`},
	{"order:#{req.ID}, read", `write ; kind=read`},
	{"order:#{req.ID} when req.ID != ''", `write ; when=req.ID != ''`},
	{"order:#{req.ID}, ttl=30s", `write ; lease=30s`},
	{"order:#{req.ID} ttl=30s", `write ; lease=30s`},
	{"order:#{req.ID}, timeout=2s", `write ; wait=2s`},
	{"order:#{req.ID}, expire=3s", `write ; lease=3s`},
	{"order:#{req.ID}, retry=2", `retry is no attribute`},
	{"order:#{req.ID},omitempty", `omitempty is no attribute`},
	{"order:#{req.ID} omitempty", `omitempty is no attribute`},
	{"k; name=pay, skip", `write ; busy=skip`},
}

// TestKeysThatAreLikeAttributes has keys with the words of attributes in them, in tags and in options.
func TestKeysThatAreLikeAttributes(t *testing.T) {
	for _, key := range []string{
		"order:#{req.ID}:wait", "doc:#{req.ID}|write", "doc when v1.2 #{req.ID}", "alert when x=#{req.X}", "a -wait=2s", "order:#{req.ID}/wait=2s", "order:#{req.ID}:limit=5", "fair:#{req.ID}", "queue/wait/#{req.ID}", "wait:2s:#{req.ID}", "skip, #{req.ID}", "county fair",
		"order:#{req.ID}:fair", "order:#{req.ID}/one-key", "order:#{req.ID}+skip", "order:#{req.ID}:wait:2s", "order:#{req.ID}:ttl=x",
		"order:#{req.ID}/kind=fair", "search?q=#{req.Q}&limit=10", "search?wait=#{req.W}&name=#{req.N}", "a/wait=2s/#{req.ID}",
		"doc:#{req.ID} read", "doc:#{req.ID} write", "job #{req.ID} exclusive", "#{req.ID}, #{req.B}", "order #{req.ID} for #{req.B}",
		"order:#{req.ID} limit 3", "order:#{req.ID} wait", "order:#{req.ID} when due", "ship:#{req.ID} 2s", "user #{req.ID}, name:#{req.B}",
		"cache #{req.ID}, ttl=#{req.TTL}", "order:#{req.ID} hold on", "order:#{req.ID ?? 'x, wait=2s'}", "order:#{req.ID},0", "a:b, c:d",
		"order:#{req.ID}:when=x", "waiting, #{req.ID}", "a == b",
	} {
		spec, err := parseTag(key + "; switchable")
		if err != nil || spec.Key != key {
			t.Errorf("parseTag(%q) = %+v, %v", key, spec, err)
		}
		if lost, found := findStray(bareText(key), key, false); found {
			t.Errorf("in %q, %q is found", key, lost.name)
		}
	}
}

// FuzzParseTag holds that no tag panics, and that what is accepted reads back.
func FuzzParseTag(f *testing.F) {
	for _, tag := range []string{"k; wait=2s", `#{x ?? "};"}; when=a; limit=3`, `#{'\`, ";;", "##{;busy=skip"} {
		f.Add(tag)
	}
	f.Fuzz(func(t *testing.T, tag string) {
		spec, err := parseTag(tag)
		if err != nil {
			return
		}
		if !strings.HasPrefix(strings.TrimSpace(tag), spec.Key) {
			t.Errorf("parseTag(%q): key %q is not its beginning", tag, spec.Key)
		}
		if spec.Wait < 0 || spec.Lease < 0 || spec.MaxHold < 0 || !spec.Busy.valid() || !spec.Outage.valid() {
			t.Errorf("parseTag(%q) = %+v", tag, spec)
		}
	})
}
