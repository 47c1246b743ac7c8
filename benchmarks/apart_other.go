//go:build !linux

package main

import "syscall"

// apart keeps the terminal's Ctrl-C from a child: the program ends it.
func apart() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
