// Package child runs a command in a process group of its own, which ends with this process however that ends.
//
// Three things see to that. Signals for the command go to the whole group. On Linux, the kernel kills the command when
// this process dies. And a second process, the warden, waits at a pipe whose other end only this process has: when it
// is closed without a word, this process was killed, and the warden kills the rest of the group. The process that
// becomes the command gives the warden the number of its group before it does: there is no moment in which the command
// runs and the warden does not know it.
//
// If the command's input and output are the terminal and this process has it, the group becomes the terminal's foreground group, so
// that keys and Ctrl-C reach the command as they would without us. Any other command may share the terminal, with a pager behind it or a
// shell that has it in the background: it gets the terminal when it wants it, and is stopped for that, as soon as this process has it.
package child

import (
	"os"
	"time"
)

// Command is a command to run.
type Command struct {
	Args                  []string // the program first
	Env                   []string
	Stdin, Stdout, Stderr *os.File // nil is /dev/null
	// Suspended is called when the terminal stops the command, which is then continued: a lock has no time to lose. It may be nil.
	Suspended func()
	// Wants is called when the command waits for a terminal that another group has. It may be nil.
	Wants func()
}

// Result is how a command ended.
type Result struct {
	Status int       // its exit status, or 128 and the number of the signal that ended it
	Signal os.Signal // that ended it, or nil
}

// poll is how often a group is looked at whose first process has ended.
const poll = 10 * time.Millisecond
