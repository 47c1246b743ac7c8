package guard

import "testing"

// TestEachOutcomeHasTraits holds that logs and telemetry know what to make of each outcome.
func TestEachOutcomeHasTraits(t *testing.T) {
	for _, outcome := range append(outcomes[:], OutcomeElected) {
		if _, ok := traits[outcome]; !ok {
			t.Errorf("no traits of %q", outcome)
		}
	}
	if len(traits) != len(outcomes)+1 {
		t.Errorf("%d traits, want %d", len(traits), len(outcomes)+1)
	}
}
