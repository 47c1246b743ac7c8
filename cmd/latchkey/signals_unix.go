//go:build unix

package main

import (
	"os"
	"syscall"
)

// passedOn are the signals that only a command gets.
var passedOn = []os.Signal{syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGALRM, syscall.SIGWINCH, syscall.SIGCONT}

// suspending are the signals with which a terminal stops a process that must not be stopped while it has a lock.
var suspending = []os.Signal{syscall.SIGTSTP}
