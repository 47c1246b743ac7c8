package redisson

import "testing"

// The names are the contract with Redisson: a Java service looks for the same strings.
func TestNames(t *testing.T) {
	for _, tt := range []struct{ name, channel string }{
		{"order:1", "redisson_lock__channel:{order:1}"},
		{"{order}:1", "redisson_lock__channel:{order}:1"},
		{"a:{b}:c", "redisson_lock__channel:a:{b}:c"},
		{"a{b", "redisson_lock__channel:a{b"},
		{"a}b", "redisson_lock__channel:{a}b}"},
		{"{}x", "redisson_lock__channel:{}x"},
		{"заказ", "redisson_lock__channel:{заказ}"},
		{"a b\n", "redisson_lock__channel:{a b\n}"},
	} {
		if got := lockChannel(tt.name); got != tt.channel {
			t.Errorf("lockChannel(%q) = %q, want %q", tt.name, got, tt.channel)
		}
	}
}
