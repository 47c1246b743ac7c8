package sim

import (
	"slices"
	"testing"
)

func TestParse(t *testing.T) {
	const whole = "*2\r\n$3\r\nget\r\n$1\r\nk\r\n"
	for _, tt := range []struct {
		in   string
		args []string
		size int
	}{
		{"", nil, 0},
		{whole, []string{"get", "k"}, len(whole)},
		{whole + "*1\r\n", []string{"get", "k"}, len(whole)},
		{"*1\r\n$0\r\n\r\n", []string{""}, 10},
		{"*1\r\n$4\r\na\r\nb\r\n", []string{"a\r\nb"}, 14},
		{"+OK\r\n", nil, 0},
		{"*x\r\n", nil, 0},
	} {
		if args, size := parse([]byte(tt.in)); !slices.Equal(args, tt.args) || size != tt.size {
			t.Errorf("parse(%q) = %q, %d, want %q, %d", tt.in, args, size, tt.args, tt.size)
		}
	}
	for cut := range whole {
		if args, _ := parse([]byte(whole[:cut])); args != nil {
			t.Errorf("parse(%q) = %q, want more", whole[:cut], args)
		}
	}
}
