package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

func TestMistakesInArgumentsOfAnyCommandAreTold(t *testing.T) {
	t.Parallel()
	for _, args := range []string{"completion nope", "completion bash more", "help nope", "nope", "ls --nope", "decode", "show a b"} {
		status, out, err := result(t, "", strings.Fields(args)...)
		if status != statusUsage || out != "" || !strings.HasPrefix(err, "latchkey: ") {
			t.Errorf("latchkey %s = %d, %q, %q", args, status, out, err)
		}
	}
	for _, args := range []string{"", "help", "help ls", "completion", "completion bash", "help completion zsh"} {
		if status, out, err := result(t, "", strings.Fields(args)...); status != statusOK || out == "" || err != "" {
			t.Errorf("latchkey %s = %d, %q, %q", args, status, out, err)
		}
	}
}

func TestMessagesAreJSONWhereverThatIsAskedFor(t *testing.T) {
	t.Parallel()
	for _, args := range []string{"ls --nope -o json", "nope --output=json", "run -o=json --nope k -- true", "ls a b -ojson", "show --output json --nope"} {
		status, _, err := result(t, "", strings.Fields(args)...)
		if status != statusUsage || !json.Valid([]byte(err)) {
			t.Errorf("latchkey %s = %d, %q", args, status, err)
		}
	}
	const text = "run --nope k -- tool -o json" // which is the command's
	if _, _, err := result(t, "", strings.Fields(text)...); !strings.HasPrefix(err, "latchkey: ") {
		t.Errorf("latchkey %s: %q", text, err)
	}
}

func TestHelpThatCannotBeWrittenIsNoMistakeInTheArguments(t *testing.T) {
	t.Parallel()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer full.Close()
	a := &app{in: os.Stdin, out: &output{File: full}, err: os.Stderr}
	if status := a.run([]string{"--help"}); status != statusInternal {
		t.Errorf("status %d, want %d", status, statusInternal)
	}
}
