//go:build !linux

package services

import "syscall"

// DieWithParent does nothing: only Linux can do that.
func DieWithParent(syscall.Signal) *syscall.SysProcAttr { return new(syscall.SysProcAttr) }
