package main

import (
	"encoding/binary"
	"os"
	"testing"
)

func TestKeepAwake(t *testing.T) {
	before, err := allowed()
	if err != nil {
		t.Skipf("this machine does not let anybody ask: %v", err)
	}
	stop, err := keepAwake()
	if err != nil {
		t.Skipf("nor this user: %v", err)
	}
	if us, err := allowed(); us != 0 || err != nil {
		t.Errorf("processors may need %d µs to wake up, %v; want 0", us, err)
	}
	stop()
	if us, err := allowed(); us != before || err != nil {
		t.Errorf("processors may need %d µs to wake up after that, %v; want %d as before", us, err, before)
	}
}

// allowed is how long processors may need to wake up, in microseconds, as Linux has it now.
func allowed() (us int32, err error) {
	f, err := os.Open(latencyFile)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	return us, binary.Read(f, binary.NativeEndian, &us)
}
