package guard_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/redisson"
)

// replaceEnv is set in the child of TestReplaceAcrossProcesses, to the address of Redis.
const replaceEnv = "LATCHKEY_TEST_REPLACE_ADDR"

// The newest call wins, whichever process it is in: once the older one has ended its work, and not beside it.
func TestReplaceAcrossProcesses(t *testing.T) {
	if addr := os.Getenv(replaceEnv); addr != "" {
		_, err := replacing(t, addr)(t.Context(), Order{ID: "7"})
		fmt.Println("ended replaced:", errors.Is(err, guard.ErrReplaced))
		return
	}
	addr := redistest.Start(t).Addr
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=1m")
	child.Env = append(os.Environ(), replaceEnv+"="+addr)
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	await(t, lines, "working")
	done := make(chan error)
	go func() {
		_, err := replacing(t, addr)(t.Context(), Order{ID: "7", Free: true})
		done <- err
	}()
	select {
	case err := <-done:
		t.Errorf("the newer call did not wait for the older one: %v", err)
	case <-time.After(300 * time.Millisecond): // the child takes a second to come to its end
	}
	await(t, lines, "told true")
	if err := <-done; err != nil {
		t.Errorf("the newer call: %v", err)
	}
	await(t, lines, "ended replaced: true")
	_, _ = io.Copy(io.Discard, lines)
	if err := child.Wait(); err != nil {
		t.Error(err)
	}
}

// replacing is a guarded function of which the newest call wins. Its work goes on until it is told, unless the order is free.
func replacing(t *testing.T, addr string) work {
	client, err := redisson.Open("redis://" + addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	settle, _ := guarded(t, client, func(ctx context.Context, o Order) (string, error) {
		if o.Free {
			return "", ctx.Err()
		}
		fmt.Println("working")
		<-ctx.Done()
		time.Sleep(time.Second)
		fmt.Println("told", errors.Is(context.Cause(ctx), guard.ErrReplaced))
		return "", ctx.Err()
	}, guard.Busy(guard.Replace))
	return settle
}

// await reads until there is a line with this text.
func await(t *testing.T, lines *bufio.Reader, text string) {
	t.Helper()
	for {
		line, err := lines.ReadString('\n')
		if strings.Contains(line, text) {
			return
		}
		if err != nil {
			t.Fatalf("no line with %q: %v", text, err)
		}
	}
}
