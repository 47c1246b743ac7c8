package main

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/redis/go-redis/v9"
)

var update = flag.Bool("update", false, "write the golden files again")

// golden compares a text with that of a file.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s: -update writes it again\ngot:\n%s\nwant:\n%s", file, got, want)
	}
}

const (
	javaClient = "11111111-2222-4333-8444-555555555555"
	goClient   = "aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee"
	hostile    = "a\x1b[31m\n\xff\u202e"
)

// stock writes locks without an end, so that what is shown is always the same, and keys of others.
func stock(t *testing.T, rdb *redis.Client) {
	t.Helper()
	ctx := t.Context()
	p := rdb.Pipeline()
	p.HSet(ctx, "order:42", javaClient+":31", "2")
	p.HSet(ctx, "fair", goClient+":1", "1")
	p.RPush(ctx, "redisson_lock_queue:{fair}", javaClient+":7", goClient+":2")
	p.ZAdd(ctx, "redisson_lock_timeout:{fair}", redis.Z{Score: 4102444800000, Member: javaClient + ":7"}, redis.Z{Score: 4102444801000, Member: goClient + ":2"})
	p.HSet(ctx, "fenced", goClient+":3", "1")
	p.Set(ctx, "redisson_lock_token:{fenced}", "17", 0)
	p.HSet(ctx, "rw", "mode", "write", goClient+":4:write", "1")
	p.HSet(ctx, hostile, goClient+":5", "1")
	p.HSet(ctx, strings.Repeat("long", 2560), goClient+":6", "1")
	p.HSet(ctx, "limiter", "rate", "5", "interval", "1000", "type", "0")
	p.Set(ctx, "permits", "2", 0)
	p.ZAdd(ctx, "{permits}:timeout", redis.Z{Score: 922337203685477, Member: "0123456789abcdef"})
	p.HSet(ctx, "user:7", "name", "x")
	p.Set(ctx, "counter", "5", 0)
	p.Set(ctx, "text", "abc", 0)
	if _, err := p.Exec(ctx); err != nil {
		t.Fatal(err)
	}
}

// What is shown of locks, and of what only looks like one.
func TestLooking(t *testing.T) {
	s := redistest.Start(t)
	stock(t, s.Client(t))
	for _, tt := range []struct {
		name   string
		args   []string
		status int
	}{
		{"ls", []string{"ls"}, 0},
		{"ls-json", []string{"ls", "-o", "json"}, 0},
		{"ls-pattern", []string{"ls", "f*"}, 0},
		{"ls-none", []string{"ls", "none*"}, 0},
		{"top", []string{"top"}, 0},
		{"top-json", []string{"top", "-o", "json", "--limit", "2"}, 0},
		{"top-age", []string{"top", "--by", "age", "--limit", "1", "f*"}, 0},
		{"top-none", []string{"top", "none*"}, 0},
		{"show-lock", []string{"show", "order:42"}, 0},
		{"show-fair", []string{"show", "fair"}, 0},
		{"show-fair-json", []string{"show", "-o", "json", "fair"}, 0},
		{"show-fenced", []string{"show", "fenced"}, 0},
		{"show-write", []string{"show", "rw"}, 0},
		{"show-permits", []string{"show", "permits"}, 0},
		{"show-hostile", []string{"show", "--quoted", `"a\x1b[31m\n\xff\u202e"`}, 0},
		{"show-none", []string{"show", "-o", "json", "none"}, 1},
		{"show-other", []string{"show", "text"}, 65},
		{"show-empty", []string{"show", ""}, 64},
		{"show-unquoted", []string{"show", "--quoted", "a"}, 64},
		{"complete-keys", []string{"__complete", "show", "fe"}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			status, out, err := result(t, at(s), tt.args...)
			if status != tt.status {
				t.Errorf("status %d, want %d: %s", status, tt.status, err)
			}
			if tt.name == "ls-json" { // as SCAN has it
				lines := slices.Sorted(strings.Lines(out))
				out = strings.Join(lines, "")
			}
			if i := strings.IndexFunc(out+err, func(r rune) bool { return r < ' ' && r != '\n' || r == '\u202e' }); i >= 0 {
				t.Errorf("a terminal would obey %q", (out + err)[i:])
			}
			golden(t, tt.name, out+"--\n"+err)
		})
	}
}

// What needs no Redis.
func TestTexts(t *testing.T) {
	facts := filepath.Join(t.TempDir(), "facts.json")
	const doc = `{"req": {"OrderID": "4 2", "N": 7, "Price": 1.5, "Lines": [{"SKU": "b"}, {"SKU": "a"}]},
		"path": {"id": "7"}, "header": {"x-tenant": "ac:me"}, "method": "POST"}`
	if err := os.WriteFile(facts, []byte(doc), 0o600); err != nil {
		t.Fatal(err)
	}
	broken := filepath.Join(t.TempDir(), "broken.json")
	if err := os.WriteFile(broken, []byte(`["no object"]`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name   string
		args   []string
		status int
	}{
		{"explain", []string{"explain", `order:#{req.OrderID}:#{header["X-Tenant"]}:#{req.N}`, "--facts", facts}, 0},
		{"explain-json", []string{"explain", `sku:#{map(req.Lines, .SKU)}`, "--facts", facts, "-o", "json"}, 0},
		{"explain-when", []string{"explain", `o:#{path.id}`, "--facts", facts, "--when", `method == "GET"`}, 0},
		{"explain-one-key", []string{"explain", "nightly", "--one-key"}, 0},
		{"explain-typo", []string{"explain", "order:#{path.id", "--facts", facts}, 65},
		{"explain-root", []string{"explain", "order:#{request.ID}", "--facts", facts}, 65},
		{"explain-nil", []string{"explain", "order:#{req.Nothing}", "--facts", facts}, 65},
		{"explain-float", []string{"explain", "order:#{req.Price}", "--facts", facts}, 65},
		{"explain-hash", []string{"explain", "o:#{hash(req.Lines)}", "--facts", facts}, 65}, // which a program makes of its structs
		{"explain-hash-of-texts", []string{"explain", "o:#{hash(map(req.Lines, .SKU))}", "--facts", facts}, 0},
		{"explain-constant", []string{"explain", "order", "--facts", facts}, 65},
		{"explain-condition", []string{"explain", "o:#{path.id}", "--facts", facts, "--when", "method"}, 65},
		{"explain-condition-constant", []string{"explain", "o:#{path.id}", "--facts", facts, "--when", `"GET" != "POST"`}, 65},
		{"explain-broken", []string{"explain", "o:#{path.id}", "--facts", broken}, 65},
		{"decode-template", []string{"decode", "redisson_lock_queue:{order:4%202}", "--template", "order:#{req.OrderID}"}, 0},
		{"decode-two", []string{"decode", "-o", "json", "ac%3Ame:7", "--template", `#{header["X-Tenant"]}:#{path.id}`}, 0},
		{"decode-function", []string{"decode", "a:b", "--template", `#{lower(user.Name)}:#{order.ID ?? "none"}`}, 0},
		{"decode-other", []string{"decode", "invoice:7", "--template", "order:#{req.OrderID}"}, 65},
		{"decode-hostile", []string{"decode", "--quoted", `"\x1b[2J"`}, 0},
		{"help", []string{"--help"}, 0},
		{"help-run", []string{"run", "--help"}, 0},
		{"help-lead", []string{"lead", "--help"}, 0},
		{"help-ls", []string{"ls", "--help"}, 0},
		{"help-top", []string{"top", "--help"}, 0},
		{"top-by", []string{"top", "--by", "key"}, 64},
		{"help-show", []string{"show", "--help"}, 0},
		{"help-free", []string{"free", "--help"}, 0},
		{"help-watch", []string{"watch", "--help"}, 0},
		{"help-explain", []string{"explain", "--help"}, 0},
		{"help-decode", []string{"decode", "--help"}, 0},
		{"help-doctor", []string{"doctor", "--help"}, 0},
		{"unknown-command", []string{"lss"}, 64},
		{"too-many", []string{"ls", "a", "b"}, 64},
		{"complete-kinds", []string{"__complete", "run", "--kind", "f"}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			status, out, err := result(t, "redis://127.0.0.1:1", tt.args...)
			if status != tt.status {
				t.Errorf("status %d, want %d: %s", status, tt.status, err)
			}
			golden(t, tt.name, out+"--\n"+err)
		})
	}
}

func TestDecodeKnowsAllNames(t *testing.T) {
	var all strings.Builder
	for _, name := range []string{
		"redisson_lock_queue:{o}", "redisson_lock_timeout:a{o}", "redisson_lock_token:{o}", "redisson_unlock_latch:{o}:0123456789abcdef0123456789abcdef",
		"latchkey_receipt:{o}:" + goClient + ":3", "latchkey_permits:{o}", "latchkey_wake:{o}", "latchkey_newest:{o}", "latchkey_client:" + goClient,
		"redisson_lock__channel:{o}", "redisson_lock__channel:{o}:" + goClient + ":7", "redisson_rwlock:{o}", "redisson_sc:{o}", "redisson_sc:{o}:" + goClient + ":4",
		"redisson_countdownlatch__channel__{{o}}", "{o}:" + goClient + ":7:rwlock_timeout:1", "a{o}:timeout", "{o}:value", "{o}:permits", "{o}:rate", "{o}:rate:value",
		"{o}:value:" + goClient, "{o}:permits:" + goClient, goClient + ":7", goClient + ":7:write", goClient, "redisson_lock_queue:o", "o:timeout",
	} {
		a := &app{output: outputText}
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		a.out = &output{File: w}
		if err := a.decode(name, ""); err != nil {
			t.Fatal(err)
		}
		_ = w.Close()
		l := newLines(r)
		all.WriteString(l.rest())
	}
	golden(t, "decode-all", all.String())
}
