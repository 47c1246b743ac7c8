package etcdtest

import (
	"strings"
	"testing"
)

// A program that forgets Main would be started again and again.
func TestStartWithoutMainSaysWhatToWrite(t *testing.T) {
	mainCalled.Store(false)
	defer mainCalled.Store(true)
	if _, err := Start(Options{}); err == nil || !strings.Contains(err.Error(), "func TestMain(m *testing.M) { etcdtest.Main(); os.Exit(m.Run()) }") {
		t.Errorf("Start = %v, want what to write", err)
	}
}
