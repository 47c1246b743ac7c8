//go:build unix

package child

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

// starterName is the name of a process that is going to become a command.
const starterName = "latchkey-starter"

// The files of a starter, beside the three of its command.
const (
	fdWarden = 3 + iota // the pipe of the warden
	fdFailed            // takes the error number of a command that can't be executed
)

// startFor starts a command for a warden to watch over, by way of a starter. It returns once the command is executed.
func startFor(w *warden, cmd *exec.Cmd) error {
	self, err := self()
	if err != nil {
		return err
	}
	failed, report, err := os.Pipe()
	if err != nil {
		return err
	}
	defer failed.Close()
	path := cmd.Path
	cmd.Path, cmd.Args = self, slices.Concat([]string{starterName, path}, cmd.Args)
	cmd.ExtraFiles = []*os.File{fdWarden - 3: w.pipe, fdFailed - 3: report}
	err = cmd.Start()
	_ = report.Close()
	if err != nil {
		return err
	}
	var number uint32
	switch err := binary.Read(failed, binary.NativeEndian, &number); {
	case errors.Is(err, io.EOF): // executed; or killed before, which its exit status says
		return nil
	case err != nil:
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		return err
	}
	_ = cmd.Wait()
	return &fs.PathError{Op: "exec", Path: path, Err: syscall.Errno(number)}
}

// becomeCommand sends the command's group to the warden, and executes the command in this process.
func becomeCommand() {
	unix.CloseOnExec(fdWarden)
	unix.CloseOnExec(fdFailed)
	_, err := fmt.Fprintf(os.NewFile(fdWarden, "warden"), "%s%d\n", wordWatch, os.Getpid())
	if err == nil {
		err = syscall.Exec(os.Args[1], os.Args[2:], os.Environ())
	}
	number, _ := errors.AsType[syscall.Errno](err)
	_ = binary.Write(os.NewFile(fdFailed, "failed"), binary.NativeEndian, uint32(number))
	os.Exit(1)
}
