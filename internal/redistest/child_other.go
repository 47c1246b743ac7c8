//go:build !linux

package redistest

import "syscall"

// dieWithParent has no equivalent here: a test binary that dies without its cleanups leaves its server running.
func dieWithParent() *syscall.SysProcAttr { return nil }

// Apart is for the children of a program: the terminal's Ctrl-C does not reach them, as the program ends them.
func Apart() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
