package guard

import (
	"fmt"
	"strings"
)

// suggest ends an error about an unknown name: with the nearest valid one if there is a likely one, else with them all.
func suggest(got string, valid []string) string {
	best, bestDistance := "", len(got)/2+1
	for _, name := range valid {
		if d := distance(strings.ToLower(got), name); d < bestDistance {
			best, bestDistance = name, d
		}
	}
	if best == "" {
		return "want one of " + strings.Join(valid, ", ")
	}
	return fmt.Sprintf("did you mean %q?", best)
}

// distance is the number of bytes to insert, delete or replace to turn a into b.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
