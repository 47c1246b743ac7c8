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

// all runs all analysers, as what takes the time is to load the packages.
var all = &analysis.Analyzer{Name: "all", Doc: "all analysers", Run: func(p *analysis.Pass) (any, error) {
	for _, a := range vet.Analyzers() {
		if _, err := a.Run(p); err != nil {
			return nil, err
		}
	}
	return nil, nil
}}

// The packages in testdata say on each line what is found there, and the golden file of fixes what it looks like afterwards.
func TestWhatIsFound(t *testing.T) {
	var packages []string
	for _, name := range []string{"requests", "binds", "options", "handlers", "ginhandlers", "rpc", "units", "held"} {
		packages = append(packages, "./vet/testdata/src/"+name)
	}
	analysistest.Run(t, "..", all, packages...)
}

func TestFixes(t *testing.T) {
	analysistest.RunWithSuggestedFixes(t, "..", analyser("latchkeydecl"), "./vet/testdata/src/fixes")
}

func TestAnalysersAreValid(t *testing.T) {
	if err := analysis.Validate(vet.Analyzers()); err != nil {
		t.Error(err)
	}
}
