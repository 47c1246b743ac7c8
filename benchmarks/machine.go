package main

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
)

// machine says on what the figures were taken.
func machine() string {
	return fmt.Sprintf("%d × %s, %s/%s, %s", runtime.NumCPU(), field("/proc/cpuinfo", "model name"), runtime.GOOS, runtime.GOARCH, field("/proc/meminfo", "MemTotal"))
}

// field returns the first value of that name in a file of "name : value" lines.
func field(path, name string) string {
	text, _ := os.ReadFile(path) // elsewhere than on Linux there is none
	for line := range strings.Lines(string(text)) {
		if n, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(n) == name {
			return strings.TrimSpace(value)
		}
	}
	return "unknown " + name
}

// shown are the modules whose versions matter.
var shown = []string{"github.com/redis/go-redis/v9", "github.com/redis/rueidis", "github.com/bsm/redislock", "github.com/go-redsync/redsync/v4"}

// versions returns those of Go and of the modules that are measured.
func versions() map[string]string {
	all := map[string]string{"go": runtime.Version()}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return all
	}
	for _, m := range info.Deps {
		for _, path := range shown {
			if m.Path == path {
				all[path] = m.Version
			}
		}
	}
	return all
}
