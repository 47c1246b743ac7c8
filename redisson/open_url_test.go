package redisson_test

import (
	"strings"
	"testing"

	"github.com/latchkey-go/latchkey/redisson"
)

func TestOpenTellsNothingOfAPassword(t *testing.T) {
	for _, url := range []string{"redis://user:s3cret/x@localhost:6379", "redis://:s3cret#x@localhost", "redis://u:s3cret%x@h:1?addr=h:2", "redis://u:42/s3cret@h"} {
		if _, err := redisson.Open(url); err == nil || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("Open(%q): %v", url, err)
		}
	}
}
