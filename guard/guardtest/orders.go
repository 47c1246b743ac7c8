package guardtest

import (
	"maps"
	"slices"
	"strings"
)

// orders is what was taken under what: an edge from the outer name to the inner one.
type orders map[string]map[string]bool

func (o *orders) add(outer, inner string) {
	if outer == inner {
		return // re-entered
	}
	if *o == nil {
		*o = make(orders)
	}
	if (*o)[outer] == nil {
		(*o)[outer] = make(map[string]bool)
	}
	(*o)[outer][inner] = true
}

// circles returns each set of names that can wait for each other for ever, as a path that ends where it begins. If
// several circles share a first name, it returns the shortest.
func (o orders) circles() []string {
	var found []string
	seen := make(map[string]bool)
	for _, start := range slices.Sorted(maps.Keys(o)) {
		path := o.back(start)
		if path == nil || seen[start] {
			continue
		}
		for _, name := range path {
			seen[name] = true
		}
		found = append(found, strings.Join(path, " > "))
	}
	return found
}

// back is the shortest path from start to itself, or nil.
func (o orders) back(start string) []string {
	paths := [][]string{{start}}
	visited := make(map[string]bool)
	for len(paths) > 0 {
		path := paths[0]
		paths = paths[1:]
		for _, next := range slices.Sorted(maps.Keys(o[path[len(path)-1]])) {
			longer := append(slices.Clone(path), next)
			if next == start {
				return longer
			}
			if !visited[next] {
				visited[next] = true
				paths = append(paths, longer)
			}
		}
	}
	return nil
}
