//go:build !linux

package play

import "syscall"

// dieWithParent has no equivalent here: a program that is killed leaves its processes running.
func dieWithParent() *syscall.SysProcAttr { return nil }
