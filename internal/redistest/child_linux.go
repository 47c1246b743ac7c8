package redistest

import "syscall"

// dieWithParent has the kernel kill a child when the process dies without its cleanups.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

// Apart is for the children of a program: the kernel kills them when it dies, and the terminal's Ctrl-C does not reach them, as the
// program ends them.
func Apart() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
