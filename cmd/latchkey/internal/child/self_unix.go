//go:build unix && !linux

package child

import "os"

// self is the path of this program.
func self() (string, error) { return os.Executable() }

// setName is not needed here.
func setName(string) {}
