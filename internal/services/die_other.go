//go:build !linux

package services

import "syscall"

// dieWithParent does nothing: only Linux can do that.
func dieWithParent(*syscall.SysProcAttr, syscall.Signal) {}
