package main

import (
	"golang.org/x/tools/go/analysis/multichecker"
	_ "github.com/latchkey-go/latchkey/guard"
)

func main() { multichecker.Main() }
