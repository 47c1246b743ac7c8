package sqllock_test

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/latchkey-go/latchkey/internal/services"
	"github.com/latchkey-go/latchkey/lock/sqllock"
)

const (
	javaDir   = "interop/java"
	targetDir = "interop/java/target"
)

// needsJava skips a test where nobody asked for Java.
func needsJava(tb testing.TB) {
	tb.Helper()
	if !services.Required("java") && os.Getenv("LATCHKEY_INTEROP") == "" {
		tb.Skip("ShedLock in Java: needs a JDK 17 and Maven; LATCHKEY_REQUIRE=java or LATCHKEY_INTEROP=1 runs this")
	}
}

// classPath builds the Java program, if its sources are not what it was last built from.
var classPath = sync.OnceValues(func() (string, error) {
	sources, err := fingerprint()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(targetDir, "peer")
	path := filepath.Join(dir, "classes") + string(filepath.ListSeparator) + filepath.Join(dir, "lib", "*")
	stamp := filepath.Join(dir, "built-from")
	if last, err := os.ReadFile(stamp); err == nil && bytes.Equal(last, sources) {
		return path, nil
	}
	repository, err := filepath.Abs(filepath.Join(targetDir, "repository"))
	if err != nil {
		return "", err
	}
	cmd := exec.Command("mvn", "-q", "-B", "-Dmaven.repo.local="+repository, "package")
	cmd.Dir = javaDir
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("mvn package: %w\n%s", err, out)
	}
	return path, os.WriteFile(stamp, sources, 0o600)
})

// fingerprint is a digest of all that the program is built from.
func fingerprint() ([]byte, error) {
	h := sha256.New()
	err := filepath.WalkDir(javaDir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && d.Name() == "target":
			return fs.SkipDir
		case d.IsDir():
			return nil
		}
		text, err := os.ReadFile(path)
		fmt.Fprintf(h, "%s %d\n%s", path, len(text), text)
		return err
	})
	return []byte(hex.EncodeToString(h.Sum(nil))), err
}

// shedLock is a Java process with a provider of ShedLock on a table.
type shedLock struct{ *process }

// shedLock starts one that goes by the clock of the database, or by its own.
func (t *table) shedLock(tb testing.TB, clock string) *shedLock {
	tb.Helper()
	path, err := classPath()
	if err != nil {
		tb.Fatal(err)
	}
	cmd := exec.Command("java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx128m", "-Dorg.slf4j.simpleLogger.defaultLogLevel=off",
		"-Duser.timezone=America/New_York", "-cp", path, "latchkey.Peer")
	cmd.Stderr = os.Stderr
	stdin, err1 := cmd.StdinPipe()
	stdout, err2 := cmd.StdoutPipe()
	if err1 != nil || err2 != nil {
		tb.Fatal(err1, err2)
	}
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	p := &shedLock{&process{cmd, stdin, bufio.NewScanner(stdout)}}
	tb.Cleanup(p.kill)
	address, user := t.jdbc(tb)
	p.is(tb, done, "open", address, user, t.name, "java-host", clock)
	return p
}

// jdbc is the data source for Java.
func (t *table) jdbc(tb testing.TB) (address, user string) {
	switch t.on {
	case sqllock.PostgreSQL:
		return "jdbc:postgresql://" + shared(tb, "postgres").Addr + "/postgres", "postgres"
	case sqllock.MySQL:
		return "jdbc:mariadb://" + shared(tb, "mariadb").Addr + "/test", "root"
	}
	file, _, _ := strings.Cut(strings.TrimPrefix(t.source, "file:"), "?")
	return "jdbc:sqlite:" + file, ""
}

// say sends a command.
func (p *shedLock) say(tb testing.TB, words ...any) {
	tb.Helper()
	var line []string
	for _, w := range words {
		line = append(line, url.QueryEscape(fmt.Sprint(w)))
	}
	p.send(tb, "%s", strings.Join(line, " "))
}

// hears returns the answer to a command.
func (p *shedLock) hears(tb testing.TB) string {
	tb.Helper()
	for {
		if text, ok := strings.CutPrefix(p.answer(tb), "answer "); ok {
			return text
		}
	}
}

// is a command that must be answered like that.
func (p *shedLock) is(tb testing.TB, want string, words ...any) {
	tb.Helper()
	p.say(tb, words...)
	if got := p.hears(tb); got != want {
		tb.Fatalf("ShedLock: %v: %s, want %s", words, got, want)
	}
}
