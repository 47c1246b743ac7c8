package child

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// dieWithUs has the kernel kill the process when the thread ends that started it.
func dieWithUs(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }

// adoptOrphans makes this process the parent of what the command leaves behind when it ends, or no longer for 0. Some containers have a first process
// that does not reap, and a group of zombies would seem to be there for ever.
func adoptOrphans(adopt uintptr) { _ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, adopt, 0, 0, 0) }
