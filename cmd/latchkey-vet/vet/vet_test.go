package vet_test

import (
	"testing"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/analysistest"

	"github.com/latchkey-go/latchkey/cmd/latchkey-vet/vet"
	_ "github.com/latchkey-go/latchkey/interceptor" // what the packages in testdata import
	_ "github.com/latchkey-go/latchkey/middleware/ginguard"
	_ "github.com/latchkey-go/latchkey/redisson"
)

func analyser(name string) *analysis.Analyzer {
	for _, a := range vet.Analyzers() {
		if a.Name == name {
			return a
		}
	}
	panic("no analyser " + name)
}

// The packages in testdata say on each line what is found there.
func TestDeclarations(t *testing.T) {
	analysistest.Run(t, "..", analyser("latchkeydecl"), "./vet/testdata/src/requests", "./vet/testdata/src/binds", "./vet/testdata/src/options",
		"./vet/testdata/src/handlers", "./vet/testdata/src/ginhandlers", "./vet/testdata/src/rpc")
}

func TestUnits(t *testing.T) {
	analysistest.Run(t, "..", analyser("latchkeyunit"), "./vet/testdata/src/units")
}

func TestHeld(t *testing.T) {
	analysistest.Run(t, "..", analyser("latchkeyheld"), "./vet/testdata/src/held")
}
