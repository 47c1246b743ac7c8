//go:build !linux

package etcdtest

import "syscall"

// dieWithParent has no equivalent here: a member ends when its input does, unless it is paused.
func dieWithParent() *syscall.SysProcAttr { return nil }
