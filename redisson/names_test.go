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

func TestSynchronizerNames(t *testing.T) {
	for _, tt := range []struct{ name, semaphore, permits, latch, value, ownPermits, receipt string }{
		{
			"s", "redisson_sc:{s}", "{s}:timeout", "redisson_countdownlatch__channel__{s}",
			"{s}:value", "{s}:permits:u", "latchkey_receipt:{s}:u:7",
		},
		{
			"{a}:s", "redisson_sc:{a}:s", "{a}:s:timeout", "redisson_countdownlatch__channel__{{a}:s}",
			"{a}:s:value", "{a}:s:permits:u", "latchkey_receipt:{a}:s:u:7",
		},
		{
			"a{b", "redisson_sc:a{b", "a{b:timeout", "redisson_countdownlatch__channel__{a{b}",
			"a{b:value", "a{b:permits:u", "latchkey_receipt:a{b:u:7",
		},
		{
			"a}b", "redisson_sc:{a}b}", "{a}b}:timeout", "redisson_countdownlatch__channel__{a}b}",
			"{a}b}:value", "{a}b}:permits:u", "latchkey_receipt:{a}b}:u:7",
		},
		{
			"", "redisson_sc:{}", "{}:timeout", "redisson_countdownlatch__channel__{}",
			"{}:value", "{}:permits:u", "latchkey_receipt:{}:u:7",
		},
		{
			"заказ 1", "redisson_sc:{заказ 1}", "{заказ 1}:timeout", "redisson_countdownlatch__channel__{заказ 1}",
			"{заказ 1}:value", "{заказ 1}:permits:u", "latchkey_receipt:{заказ 1}:u:7",
		},
	} {
		value, permits, ownValue, ownPermits := rateKeys(tt.name, "u")
		for _, n := range []struct{ what, got, want string }{
			{"semaphoreChannel", semaphoreChannel(tt.name), tt.semaphore},
			{"permitsKey", permitsKey(tt.name), tt.permits},
			{"latchChannel", latchChannel(tt.name), tt.latch},
			{"value", value, tt.value},
			{"ownValue", ownValue, tt.value + ":u"},
			{"ownPermits", ownPermits, tt.ownPermits},
			{"permits", permits + ":u", tt.ownPermits},
			{"receiptKey", receiptKey(tt.name, "u", 7), tt.receipt},
		} {
			if n.got != n.want {
				t.Errorf("%s of %q = %q, want %q", n.what, tt.name, n.got, n.want)
			}
		}
	}
}

func TestHashTag(t *testing.T) {
	for _, tt := range []struct{ key, want string }{
		{"a", "a"}, {"{a}b", "a"}, {"x{y}z{w}", "y"}, {"{}x", "{}x"}, {"a{b", "a{b"}, {"a}b", "a}b"}, {"{{a}b}", "{a"}, {"", ""},
	} {
		if got := hashTag(tt.key); got != tt.want {
			t.Errorf("hashTag(%q) = %q, want %q", tt.key, got, tt.want)
		}
	}
}
