// Command services runs the suites of the lock services other than Redisson's, on real servers and beside the libraries of others:
//
//	go -C tools run ./matrix/services ..
//
// A server or a JDK that is missing is a failure here. The program lists the tests that were skipped all the same, with
// the reasons.
package main

import (
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/latchkey-go/latchkey/tools/matrix/tally"
)

// required are the services and tools without which a suite must fail, in the words of LATCHKEY_REQUIRE.
const required = "redis,redisson,zookeeper,postgres,mariadb,java"

// suite is a call of go test.
type suite struct {
	dir      string // below the root
	packages []string
}

func main() {
	log.SetFlags(0)
	log.SetPrefix("services: ")
	only := flag.String("only", "", "run the suites that have this in their folder or package, such as etcd or sql")
	flag.Parse()
	if flag.NArg() != 1 {
		log.Fatal("usage: services [-only PART] ROOT")
	}
	suites, err := find(flag.Arg(0))
	if err != nil {
		log.Fatal(err)
	}
	var t tally.Tally
	broken := 0
	for _, s := range suites {
		if name := s.String(); strings.Contains(name, *only) {
			fmt.Println("services:", name)
			if err := t.Run(s.command(flag.Arg(0))); err != nil {
				broken++
			}
		}
	}
	fmt.Print(t.Failures())
	for _, reason := range t.Reasons() {
		fmt.Println("services: skipped", reason)
	}
	fmt.Printf("services: %d passed, %d failed, %d skipped\n", t.Passed, t.Failed, t.Skipped)
	if broken > 0 || t.Passed == 0 {
		os.Exit(1)
	}
}

// find returns the suites: those that are about other services, on the modules below lock and jobs, and what takes minutes to compile.
func find(root string) ([]suite, error) {
	suites := []suite{
		{".", []string{"./lock/leases", "./lock/setnxlock", "./internal/services"}},
		{".", []string{"./redisson/interop", "-parallel=24", "-run", "^TestInterop/setnx"}},
		{"examples/switch", []string{"."}},
		{"examples/frameworks", []string{"-race=false", "./..."}},
		{"test/setnxlock", []string{"."}},
		{"test/temporal", []string{"."}},
		{"test/docs", []string{"-race=false", "."}},
	}
	for _, pattern := range []string{"lock/*/go.mod", "jobs/*/go.mod"} {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			dir, err := filepath.Rel(root, filepath.Dir(file))
			if err != nil {
				return nil, err
			}
			suites = append(suites, suite{dir, []string{"./..."}})
		}
	}
	return suites, nil
}

func (s suite) String() string { return s.dir + " " + strings.Join(s.packages, " ") }

func (s suite) command(root string) *exec.Cmd {
	cmd := exec.Command("go", append([]string{"test", "-json", "-race", "-count=1", "-parallel=8", "-timeout=10m"}, s.packages...)...)
	cmd.Dir, cmd.Stderr = filepath.Join(root, s.dir), os.Stderr
	cmd.Env = append(os.Environ(), "CGO_ENABLED=1", "LATCHKEY_INTEROP=1", "LATCHKEY_REQUIRE="+required)
	return cmd
}
