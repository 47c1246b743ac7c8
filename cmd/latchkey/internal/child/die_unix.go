//go:build unix && !linux

package child

import "syscall"

// dieWithUs is left to the warden here.
func dieWithUs(*syscall.SysProcAttr) {}

// adoptOrphans has no equivalent here.
func adoptOrphans(uintptr) {}
