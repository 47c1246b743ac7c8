package server

import "syscall"

// apart has the kernel kill a child when the program dies, and keeps the terminal's Ctrl-C from it: the program ends it.
func apart() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
