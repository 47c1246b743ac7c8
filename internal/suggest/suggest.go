// Package suggest finds the name that was probably meant by one that there is not, for the errors of all packages.
package suggest

import (
	"fmt"
	"slices"
	"strings"
)

// Ending is how an error about an unknown name ends: ", did you mean wait?" if a name is near, ": there is lease, wait" if
// none is, and both for a guess that is far. names are those that can stand in the place of name, and nothing else.
func Ending(name string, names []string) string {
	near, d := Nearest(name, names)
	switch {
	case near == "":
		return ": there is " + List(names)
	case d <= 1+len(name)/5:
		return fmt.Sprintf(", did you mean %s?", near)
	}
	return fmt.Sprintf(", did you mean %s? There is %s", near, List(names))
}

// Nearest returns the name that is most like name, and their distance in any case of letters. It is empty if none is
// like it: if more than a third of it, and one letter, would have to change. If several are, it is the first in the
// alphabet, as names often come out of maps.
func Nearest(name string, names []string) (near string, distance int) {
	distance = len(name)/3 + 2
	for _, candidate := range names {
		if d := Distance(strings.ToLower(name), strings.ToLower(candidate)); d < distance || d == distance && candidate < near {
			near, distance = candidate, d
		}
	}
	return near, distance
}

// Distance counts the insertions, deletions, substitutions and swaps of neighbours that turn a into b, in bytes.
func Distance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(last[j]+cost, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}

// List puts names into a sentence, sorted. It shows at most twenty.
func List(names []string) string {
	const most = 20
	names = slices.Sorted(slices.Values(names))
	switch n := len(names); {
	case n == 0:
		return "none"
	case n > most:
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), n-most)
	}
	return strings.Join(names, ", ")
}
