package etcdtest

import "syscall"

// dieWithParent has the kernel kill a member when the process that started it dies, also if the member is paused.
func dieWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
