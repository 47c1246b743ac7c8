// Latchkey is the command line of package redisson: it runs commands under the locks that services in Go and Java take, shows who
// holds them, frees them, and looks for what is wrong with a Redis that keeps them.
//
//	latchkey run --wait 10s report:daily -- ./report.sh
//	latchkey ls 'order:*'
//	latchkey doctor
//
// README.md in this folder has all commands and their exit statuses.
package main

import (
	"os"
	"runtime"

	"github.com/latchkey-go/latchkey/cmd/latchkey/internal/child"
)

func main() {
	child.Serve()          // and nothing else, if that is what this process was started for
	runtime.LockOSThread() // the kernel kills the command when the thread that started it ends; see child.Start
	a := &app{in: os.Stdin, out: &output{File: os.Stdout}, err: os.Stderr, environ: os.Environ()}
	os.Exit(a.run(os.Args[1:]))
}
