package main

import (
	"os"
	"strings"
	"testing"
)

// The README shows this program, and shows it as it is.
func TestREADME(t *testing.T) {
	program, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(readme), "```go\n"+string(program)+"```\n") {
		t.Error("README.md does not hold main.go as it is")
	}
}
