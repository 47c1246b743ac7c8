package play

import "syscall"

// dieWithParent has the kernel kill a process when the program dies that has started it. It may be stopped then.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
