package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
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
var shown = []string{"github.com/redis/go-redis/v9", "github.com/redis/rueidis", "github.com/bsm/redislock", "github.com/go-redsync/redsync/v4",
	"github.com/expr-lang/expr", "cel.dev/cel-go"}

// redissonVersion is where the pom of the worker for Redisson says which one that is.
var redissonVersion = regexp.MustCompile(`<redisson.version>(.*)</redisson.version>`)

// versions returns those of Go, of Java, and of what is measured.
func versions() map[string]string {
	all := map[string]string{"go": runtime.Version()}
	if out, err := exec.Command("java", "--version").Output(); err == nil {
		all["java"], _, _ = strings.Cut(string(out), "\n")
		if pom, err := os.ReadFile(filepath.Join(javaDir, "pom.xml")); err == nil && redissonVersion.Match(pom) {
			all["org.redisson:redisson"] = string(redissonVersion.FindSubmatch(pom)[1])
		}
	}
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

// latencyFile takes the longest time, in microseconds as an int32, for which processors may need to wake up, and forgets it when it is closed.
// Read, it gives the shortest that anybody asks for. See Documentation/power/pm_qos_interface.rst of Linux.
const latencyFile = "/dev/cpu_dma_latency"

// keepAwake keeps idle processors from halting until stop. To wake one takes longer than Redis takes for a command, most of all on a virtual
// machine, which halts now at once and now after some waiting.
func keepAwake() (stop func(), err error) {
	f, err := os.OpenFile(latencyFile, os.O_WRONLY, 0)
	if err != nil {
		return nil, err
	}
	if _, err := f.Write(make([]byte, 4)); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() { _ = f.Close() }, nil // which ends the request in any case
}
