// Latchkey-vet finds mistakes in the declarations of Latchkey before the program runs. README.md in this folder says how to run it,
// and what it sees.
//
//	go vet -vettool=$(which latchkey-vet) ./...
package main

import (
	"golang.org/x/tools/go/analysis/multichecker"

	"github.com/latchkey-go/latchkey/cmd/latchkey-vet/vet"
)

func main() { multichecker.Main(vet.Analyzers()...) }
