package suggest

import "testing"

func TestDistance(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want int
	}{
		{"", "", 0},
		{"wait", "wait", 0},
		{"", "wait", 4},
		{"wait", "", 4},
		{"wiat", "wait", 1}, // neighbours swapped
		{"wat", "wait", 1},
		{"waitt", "wait", 1},
		{"bait", "wait", 1},
		{"kitten", "sitting", 3},
	} {
		if got := Distance(tt.a, tt.b); got != tt.want {
			t.Errorf("Distance(%q, %q) = %d, want %d", tt.a, tt.b, got, tt.want)
		}
		if got := Distance(tt.b, tt.a); got != tt.want {
			t.Errorf("Distance(%q, %q) = %d, want %d", tt.b, tt.a, got, tt.want)
		}
	}
}

func TestEnding(t *testing.T) {
	names := []string{"wait", "lease", "max-hold"}
	for _, tt := range []struct{ name, want string }{
		{"wiat", ", did you mean wait?"},
		{"WAIT", ", did you mean wait?"},
		{"release", ", did you mean lease?"},
		{"hold", ": there is lease, max-hold, wait"},
		{"wet", ", did you mean wait? There is lease, max-hold, wait"}, // a far guess
	} {
		if got := Ending(tt.name, names); got != tt.want {
			t.Errorf("Ending(%q) = %q, want %q", tt.name, got, tt.want)
		}
	}
	for _, names := range [][]string{{"Ref", "Seq"}, {"Seq", "Ref"}} { // as they come out of a map
		if got, want := Ending("Yes", names), ", did you mean Ref? There is Ref, Seq"; got != want {
			t.Errorf("Ending of %q = %q, want %q", names, got, want)
		}
	}
	if got := Ending("x", nil); got != ": there is none" {
		t.Errorf("Ending of no names = %q", got)
	}
}

func TestListShowsTwenty(t *testing.T) {
	var names []string
	for c := 'x'; c >= 'a'; c-- {
		names = append(names, string(c))
	}
	if got, want := List(names), "a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t and 4 more"; got != want {
		t.Errorf("List = %q, want %q", got, want)
	}
}
