package guard_test

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/latchkey-go/latchkey/guard"
)

// reasons is a handler that keeps the reasons of lines as they are.
type reasons struct {
	slog.Handler
	all []string
}

func (r *reasons) Enabled(context.Context, slog.Level) bool { return true }

func (r *reasons) Handle(_ context.Context, line slog.Record) error {
	line.Attrs(func(a slog.Attr) bool {
		if a.Key == "reason" {
			r.all = append(r.all, a.Value.String())
		}
		return true
	})
	return nil
}

// logged returns what Log says of a call with keys that the locker refuses with text.
func logged(t *testing.T, text string, keys ...string) string {
	t.Helper()
	var seen reasons
	l := newSpy()
	l.refuse = make(map[string]error)
	for _, key := range keys {
		l.refuse[key] = errors.New(text)
	}
	g := guard.Must(guard.New(l, guard.Name("g"), guard.KeysFunc(func(o Order) ([]string, error) { return o.Items, nil }), guard.Log(slog.New(&seen))))
	_, _ = guard.Must(guard.Func(g, settled))(t.Context(), Order{Items: keys})
	if len(seen.all) != 1 {
		t.Fatalf("%q: reasons %q, want one", keys, seen.all)
	}
	return strings.TrimPrefix(seen.all[0], `guard "g": lock service did not answer: `)
}

// TestLogRedactsKeys holds that a key is hidden where it stands by itself, in each way in which errors write it, and that the rest stays.
func TestLogRedactsKeys(t *testing.T) {
	for _, tt := range []struct {
		keys       []string
		text, want string
	}{
		// A short key is in many words.
		{[]string{"a"}, "a dial to a master: READONLY a", "<key> dial to <key> master: READONLY <key>"},
		{[]string{"order"}, `guard "order.settle": reorder orders: order.`, `guard "order.settle": reorder orders: <key>.`},
		{[]string{"7"}, "dial tcp 10.0.0.7:6379: 7 of 17 in 7.5s, 7s", "dial tcp 10.0.0.7:6379: <key> of 17 in 7.5s, 7s"},
		{[]string{"t"}, "can't", "can't"},
		{[]string{"order:4"}, "order:4 and order:42", "<key> and order:42"},
		// Quoted, with escapes.
		{[]string{`a"b`}, `"a\"b", a"b`, `"<key>", <key>`},
		{[]string{"é\xff"}, `"é\xff" "\u00e9\xff"` + " é\xff", `"<key>" "<key>" <key>`},
		{[]string{"a\nb"}, `'a\nb'`, `'<key>'`},
		// Names that are made of it.
		{[]string{"order:7"}, "{order:7}:timeouts redisson_lock__channel:{order:7}", "{<key>}:timeouts redisson_lock__channel:{<key>}"},
		{[]string{"order:{7}"}, "order:{7}:timeouts redisson_lock__channel:order:{7}", "<key>:timeouts redisson_lock__channel:<key>"},
		{[]string{"7"}, "{7}:timeouts redisson_lock__channel:{7} app:7", "{<key>}:timeouts redisson_lock__channel:{<key>} app:<key>"},
		{[]string{"order:7"}, "app.order:7 /locks/order:7 prod-order:7", "app.<key> /locks/<key> prod-<key>"},
		// Several.
		{[]string{"a", "a:b", "a:b:c"}, "a:b:c a:b a", "<key> <key> <key>"},
		{[]string{"a", "b.c:d"}, "a.b.c:d b.c:d.a", "<key>.<key> <key>.<key>"},
		{[]string{"key"}, "key keys", "<key> keys"},
	} {
		if got := logged(t, tt.text, tt.keys...); got != tt.want {
			t.Errorf("keys %q: reason of %s is %s, want %s", tt.keys, tt.text, got, tt.want)
		}
	}
}

// TestLogRedactsKeysAtRandom puts keys among words that have them in it, and in all the ways in which errors write them.
func TestLogRedactsKeysAtRandom(t *testing.T) {
	seed := rand.Uint64()
	dice := rand.New(rand.NewPCG(seed, 11))
	pick := func(from ...string) string { return from[dice.IntN(len(from))] }
	for range 300 {
		keys := randomLogKeys(pick, 1+dice.IntN(3))
		var text, want strings.Builder
		for range 1 + dice.IntN(12) {
			key := pick(keys...)
			word := randomLogWord(pick, key)
			hidden := word
			if dice.IntN(2) == 0 {
				quoted, ascii := strconv.Quote(key), strconv.QuoteToASCII(key)
				form := pick(key, quoted[1:len(quoted)-1], ascii[1:len(ascii)-1])
				frame := pick("%s", `"%s"`, "'%s'", "(%s)", "%s,", "%s:", "{%s}:timeouts", "redisson_lock__channel:{%s}", "app:%s", "%s. Then")
				word, hidden = strings.Replace(frame, "%s", form, 1), strings.Replace(frame, "%s", "<key>", 1)
			} else if slices.ContainsFunc(keys, func(key string) bool { return hasToken(word, key) }) {
				continue // who can tell?
			}
			text.WriteString(word + " ")
			want.WriteString(hidden + " ")
		}
		if text.Len() == 0 {
			continue
		}
		got := logged(t, text.String(), keys...)
		if got != want.String() {
			t.Fatalf("seed %d: keys %q: reason of %q is\n%q, want\n%q", seed, keys, text.String(), got, want.String())
		}
		for _, key := range keys {
			if hasToken(got, key) {
				t.Fatalf("seed %d: keys %q: reason of %q is %q, with a key", seed, keys, text.String(), got)
			}
		}
	}
}

// randomLogKeys returns n keys without blanks, which are between words.
func randomLogKeys(pick func(...string) string, n int) (keys []string) {
	for len(keys) < n {
		var key strings.Builder
		key.WriteString(pick("a", "or", "7", "é", "7a", "order", "\xffo", "{7}a"))
		for pick("more", "") != "" {
			key.WriteString(pick("", ":", "-", ".", `"`, `\`, "/", "{") + pick("a", "or", "7", "é"))
		}
		if !slices.Contains(keys, key.String()) {
			keys = append(keys, key.String())
		}
	}
	return keys
}

// randomLogWord returns a word of an error, or one that has key in it.
func randomLogWord(pick func(...string) string, key string) string {
	return pick("guard", `"order.settle":`, "READONLY", "127.0.0.1:6379:", "i/o", "can't", "28.5s", "(waited", "a", "7", "order",
		"x"+key, key+"9", "1"+key+"z", key+".settle", "10."+key+".3", "re-"+key, "ü"+key)
}

// hasToken reports whether key is in text and not a part of a longer word.
func hasToken(text, key string) bool {
	text, key = strings.ToValidUTF8(text, "\ue000"), strings.ToValidUTF8(key, "\ue000") // of which a regexp can't be made otherwise
	if !strings.Contains(text, key) {
		return false
	}
	left, right := `(?:^|[^\pL\pN_])`, `(?:$|[^\pL\pN_])`
	if onlyWord.MatchString(key) {
		left, right = `(?:^|[^\pL\pN_.'-]|(?:^|[^\pL\pN_])[.'-])`, `(?:$|[^\pL\pN_.'-]|[.'-](?:$|[^\pL\pN_]))`
	} else if !onlyWord.MatchString(string([]rune(key)[:1])) {
		left = ""
	}
	return regexp.MustCompile(left + regexp.QuoteMeta(key) + right).MatchString(text)
}

var onlyWord = regexp.MustCompile(`^[\pL\pN_]+$`)

// TestLogRedactsKeysOfAStack has a line of the first guard of a Stack that quotes the key of the next one, which has no log.
func TestLogRedactsKeysOfAStack(t *testing.T) {
	l := newSpy()
	l.refuse = map[string]error{"order:7": errors.New("READONLY order:7")}
	logger, text := logText()
	first := guard.Must(guard.New(l, guard.Name("first"), guard.Key("customer:#{req.ID}"), guard.Log(logger)))
	next := guard.Must(guard.New(l, guard.Name("next"), guard.Key("order:#{req.ID}")))
	stacked := guard.Must(guard.Func(guard.Must(guard.Stack(first, next)), settled))
	_, _ = stacked(t.Context(), Order{ID: "7"})
	if !strings.Contains(text.String(), "READONLY <key>") || strings.Contains(text.String(), "order:7") {
		t.Errorf("the line of the first guard in a Stack is %s", text)
	}
}

// TestLogRedactsInShadowMode has a locker that quotes the key which it is asked for in place of the guard's own.
func TestLogRedactsInShadowMode(t *testing.T) {
	for want, log := range map[string]func(*slog.Logger) guard.Option{
		"READONLY latchkey-shadow:<key>": guard.Log, "keys=[order:7] reason": guard.LogKeys,
	} {
		synctest.Test(t, func(t *testing.T) {
			l := newSpy()
			l.refuse = map[string]error{"latchkey-shadow:order:7": errors.New("READONLY latchkey-shadow:order:7")}
			logger, text := logText()
			shadow, _ := shadowed(t, l, aSecond, log(logger))
			_, _ = shadow(t.Context(), Order{ID: "7"})
			if !strings.Contains(text.String(), want) {
				t.Errorf("the line is %s, want %s in it", text, want)
			}
		})
	}
}
