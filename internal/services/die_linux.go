package services

import "syscall"

// dieWithParent has the kernel end the server when the process that started it dies without Stop.
func dieWithParent(attr *syscall.SysProcAttr, sig syscall.Signal) { attr.Pdeathsig = sig }
