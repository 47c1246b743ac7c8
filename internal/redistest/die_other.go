//go:build !linux

package redistest

import "syscall"

// dieWithParent has no equivalent here: a test binary that dies without its cleanups leaves its server running.
func dieWithParent() *syscall.SysProcAttr { return nil }
