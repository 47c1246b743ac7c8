package spel

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/keyexpr"
)

// FuzzExpression holds that no text makes the compiler panic, that its errors have a place in the text, and that a literal
// comes out as it went in.
func FuzzExpression(f *testing.F) {
	for _, seed := range []string{
		"order:",
		"#{",
		"{#x}",
		"##{",
		"'",
		"\"",
		"\\",
		"\x00",
		"é\u00a0\U0001f600",
		"'a' + #p0.id",
		"a#{#p0.id}b",
		"#p0?.x.![z]",
		"#a ?: 'b'",
		"T(x)",
		"{1,2}",
		"#p0.name.substring(1,2).hashCode()",
		"between {1,2}",
		"a ? b : c",
		"!!!not -1",
		"'#' + #p0.id + '{#'",
		"0X",
		"0x1L + 9223372036854775808",
		"#if",
		"#if.x",
		"#p0.items.![sku][0]",
		"'a' matches 'b'",
		"#p0.attrs[k]?.length() ?: {1}",
		"'lock:#{' + #p0.id + '}'",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		_, err := keysOf(t, Expression(s, Params("order")))
		checkError(t, s, err)
		if strings.Contains(s, "#{") || len(s) > 200 {
			return
		}
		quoted := strings.ReplaceAll(s, "'", "''")
		text := "'" + quoted + "' + #p0.id + '" + quoted + "'"
		got, err := keysOf(t, Expression(text))
		if err != nil {
			checkError(t, text, err)
		} else if got[0] != s+"42"+s {
			t.Errorf("Expression(%q) makes %q", text, got)
		}
	})
}

func checkError(t *testing.T, text string, err error) {
	t.Helper()
	if err == nil || errors.Is(err, keyexpr.ErrValue) {
		return
	}
	fault, ok := errors.AsType[*keyexpr.Error](err)
	if !ok || fault.Text != text || fault.Offset < 0 || fault.Offset > len(text) || fault.Reason == "" || strings.Contains(err.Error(), "\n") {
		t.Errorf("Expression(%q) = %#v, want an *Error with a place in this text", text, err)
	}
}

// quickest returns how long f takes, tried again if something else on the machine may have disturbed it.
func quickest(enough time.Duration, f func()) time.Duration {
	least := time.Hour
	for try := 0; try < 20 && least > enough; try++ {
		start := time.Now()
		f()
		least = min(least, time.Since(start))
	}
	return least
}

// Texts that made the compiler of the first edition take for ever, or would another one.
func TestNothingHostileTakesLong(t *testing.T) {
	var nested strings.Builder
	nested.WriteString("#p0.name")
	choice, chosen := "1", "#p0.name"
	for range 60 {
		nested.WriteString("?.trim()")
		choice = "(" + choice + " == 1 ? 1 : 2)"
		chosen = "(" + chosen + ".equals('a') ? 'b' : 'c')"
	}
	for _, tt := range []struct{ name, text string }{
		{"safe calls", nested.String()},
		{"choices in choices", choice},
		{"tests of what was chosen", chosen},
		{"a long sum", "'a'" + strings.Repeat("+#p0.id", 500)},
		{"a long sum of numbers", "1" + strings.Repeat("+1", 1900)},
		{"a long chain", "#p0.name" + strings.Repeat(".trim()", 400)},
		{"brackets", strings.Repeat("(", 2000) + "1" + strings.Repeat(")", 2000)},
		{"negations", strings.Repeat("!", 4000) + "true"},
		{"lists", strings.Repeat("{", 90) + strings.Repeat("}", 90)},
		{"projections in projections", "#p0.tags.![#p0.tags.![#p0.tags.![#p0.tags.![#this + 'x']]]]"},
		{"texts that grow", strings.Repeat("(", 30) + "#p0.name" + strings.Repeat(".concat(#p0.name))", 30)},
	} {
		took := quickest(slower*200*time.Millisecond, func() {
			_, err := keysOf(t, Expression(tt.text, Params("order")))
			checkError(t, tt.text, err)
		})
		if took > slower*200*time.Millisecond {
			t.Errorf("%s takes %v", tt.name, took)
		}
	}
}
