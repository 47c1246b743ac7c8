//go:build unix

package main

import (
	"os"
	"syscall"
)

// passedOn are the signals that only a command gets.
var passedOn = []os.Signal{syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGALRM, syscall.SIGWINCH, syscall.SIGCONT}
