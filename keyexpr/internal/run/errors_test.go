package run

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

// Whose fault an error is decides what a client gets, and what is in its text decides what may be logged.
func TestBlame(t *testing.T) {
	_, number := strconv.Atoi("secret")
	for _, tt := range []struct {
		name    string
		err     error
		want    string
		request bool // the request is to blame
	}{
		{"a fault", Faulty("is empty"), "keyexpr: unusable value: req.ID is empty", true},
		{"a fault in another error", fmt.Errorf("secret: %w", Faulty("is empty")), "keyexpr: unusable value: req.ID is empty", true},
		{"a fact", &OutsideError{"root body", io.ErrUnexpectedEOF}, "keyexpr: req.ID: root body: unexpected EOF", false},
		{"a function", &OutsideError{"function claim", io.ErrUnexpectedEOF}, "keyexpr: req.ID: function claim: unexpected EOF", false},
		{"a fact that a function asked for", &OutsideError{"function claim", &OutsideError{"root body", io.EOF}}, "keyexpr: req.ID: function claim: root body: EOF", false},
		{"a function that blames the request", &OutsideError{"function claim", fmt.Errorf("%w: no tenant", ErrValue)}, "function claim: keyexpr: unusable value: no tenant", true},
		{"a panic", &PanicError{"boom", "x.go:7"}, "keyexpr: unusable value: req.ID panicked: boom (at x.go:7)", true},
		{"anything else, whose text may hold the value", number, "keyexpr: unusable value: req.ID fails for this request", true},
	} {
		err := Blame("  req.ID ", tt.err)
		if !strings.HasSuffix(err.Error(), tt.want) || errors.Is(err, ErrValue) != tt.request || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: Blame = %v, want %q, and ErrValue: %v", tt.name, err, tt.want, tt.request)
		}
	}
}

// The error that was blamed is still in the one that comes back, but for those whose text is left out.
func TestBlameKeepsTheCause(t *testing.T) {
	for _, err := range []error{&OutsideError{"root body", io.ErrUnexpectedEOF}, &OutsideError{"function f", io.ErrUnexpectedEOF}} {
		if blamed := Blame("x", err); !errors.Is(blamed, io.ErrUnexpectedEOF) {
			t.Errorf("Blame(%v) = %v, which has lost its cause", err, blamed)
		}
	}
	if panicked, ok := errors.AsType[*PanicError](Blame("x", &PanicError{"boom", "x.go:7"})); !ok || panicked.Value != "boom" {
		t.Error("the value of a panic is lost")
	}
}

func TestAbridge(t *testing.T) {
	for _, tt := range []struct {
		text string
		cut  bool
	}{
		{"", false},
		{strings.Repeat("x", 120), false},
		{strings.Repeat("x", 121), true},
		{strings.Repeat("é", 60), false},
		{"x" + strings.Repeat("é", 60), true},
		{strings.Repeat("→", 1000), true},
	} {
		got := Abridge(tt.text)
		switch {
		case !utf8.ValidString(got):
			t.Errorf("Abridge(%.10q…) = %q, which is no UTF-8", tt.text, got)
		case tt.cut && (!strings.HasSuffix(got, "…") || len(got) > 120+len("…")):
			t.Errorf("Abridge(%.10q…) = %q", tt.text, got)
		case !tt.cut && got != tt.text:
			t.Errorf("Abridge(%.10q…) = %q, want it as it is", tt.text, got)
		}
	}
}
