package run

import (
	"errors"
	"strings"
	"testing"
)

// What may be sent to a client is the text of the hole and nothing else of the error.
func TestBlameHoleNamesTheFact(t *testing.T) {
	for _, tt := range []struct{ src, want string }{
		{" req.ID ", "req.ID"},
		{`header["X-Tenant"]`, `header["X-Tenant"]`},
		{strings.Repeat("x", 200), strings.Repeat("x", 120) + "…"},
	} {
		err := BlameHole(tt.src, ErrEmpty)
		blamed, ok := errors.AsType[interface {
			error
			Fact() string
		}](err)
		if !ok || blamed.Fact() != tt.want || !errors.Is(err, ErrValue) || err.Error() != Blame(tt.src, ErrEmpty).Error() {
			t.Errorf("BlameHole(%q) = %v, want the error of Blame that names %q", tt.src, err, tt.want)
		}
	}
}
