package services

import "syscall"

// DieWithParent has the kernel send a signal to a child when the process that started it dies, even if that can't clean up.
func DieWithParent(sig syscall.Signal) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: sig}
}
