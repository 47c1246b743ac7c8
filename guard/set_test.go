package guard

import (
	"strings"
	"testing"
)

// Every attribute of a Spec can be set by itself, and comes out as it does from a tag.
func TestSetIsOneAttributeOfATag(t *testing.T) {
	for _, tt := range []struct{ attribute, text string }{
		{"key", "order:#{req.OrderID}"}, {"when", "req.Total > 100"}, {"kind", "fair"}, {"wait", "forever"}, {"lease", "2s"},
		{"limit", "3"}, {"busy", "skip"}, {"one-key", "true"},
	} {
		var got, want Spec
		if err := got.Set(tt.attribute, tt.text); err != nil {
			t.Errorf("Set(%q, %q) = %v", tt.attribute, tt.text, err)
		}
		text := "; " + tt.attribute + "=" + tt.text
		if tt.text == "true" {
			text = "; " + tt.attribute
		}
		if err := want.UnmarshalText([]byte(text)); err != nil || got != want {
			t.Errorf("Set(%q, %q) makes %v, the tag %v, %v", tt.attribute, tt.text, got, want, err)
		}
	}
}

func TestSetSaysWhatWasMeant(t *testing.T) {
	for _, tt := range []struct{ attribute, text, want string }{
		{"wiat", "2s", "did you mean wait?"}, {"wait", "2", "2s"}, {"kind", "farr", "did you mean fair?"}, {"limit", "0", "at least 1"},
	} {
		var s Spec
		if err := s.Set(tt.attribute, tt.text); err == nil || !strings.Contains(err.Error(), tt.want) || s != (Spec{}) {
			t.Errorf("Set(%q, %q) = %v with %v, want %q and nothing set", tt.attribute, tt.text, err, s, tt.want)
		}
	}
}
