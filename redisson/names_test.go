package redisson

import (
	"testing"

	"github.com/latchkey-go/latchkey/lock"
)

// The names are the contract with Redisson: a Java service looks for the same strings.
func TestNames(t *testing.T) {
	const id = "00000000-0000-4000-8000-000000000001:7"
	for _, tt := range []struct{ what, got, want string }{
		{"lock channel", lockChannel("order:1"), "redisson_lock__channel:{order:1}"},
		{"lock channel, hash tag", lockChannel("{order}:1"), "redisson_lock__channel:{order}:1"},
		{"lock channel, tag inside", lockChannel("a:{b}:c"), "redisson_lock__channel:a:{b}:c"},
		{"lock channel, lone opening brace", lockChannel("a{b"), "redisson_lock__channel:a{b"},
		{"lock channel, lone closing brace", lockChannel("a}b"), "redisson_lock__channel:{a}b}"},
		{"lock channel, empty tag", lockChannel("{}x"), "redisson_lock__channel:{}x"},
		{"lock channel, UTF-8", lockChannel("заказ"), "redisson_lock__channel:{заказ}"},
		{"lock channel, white space", lockChannel("a b\n"), "redisson_lock__channel:{a b\n}"},
		{"lock channel, empty name", lockChannel(""), "redisson_lock__channel:{}"},
		{"fair queue", fairQueue("order:1"), "redisson_lock_queue:{order:1}"},
		{"fair queue, hash tag", fairQueue("{order}:1"), "redisson_lock_queue:{order}:1"},
		{"fair deadlines", fairDeadlines("order:1"), "redisson_lock_timeout:{order:1}"},
		{"fair deadlines, hash tag", fairDeadlines("{order}:1"), "redisson_lock_timeout:{order}:1"},
		{"fair channel", queueID{name: "order:1", kind: lock.Fair, alone: id}.channel(), "redisson_lock__channel:{order:1}:" + id},
		{"token", tokenKey("order:1"), "redisson_lock_token:{order:1}"},
		{"token, hash tag", tokenKey("{order}:1"), "redisson_lock_token:{order}:1"},
		{"read/write channel", rwChannel("order:1"), "redisson_rwlock:{order:1}"},
		{"read/write channel, hash tag", rwChannel("{order}:1"), "redisson_rwlock:{order}:1"},
		{"read timeout", readTimeout("rw", id), "{rw}:" + id + ":rwlock_timeout:1"},
		{"read timeout, hash tag", readTimeout("{test}:abc", id), "{test}:abc:" + id + ":rwlock_timeout:1"},
		{"semaphore channel", semaphoreChannel("order:1"), "redisson_sc:{order:1}"},
		{"semaphore channel, hash tag", semaphoreChannel("{order}:1"), "redisson_sc:{order}:1"},
		{"newest", newestName("order:1"), "latchkey_newest:{order:1}"},
		{"newest, hash tag", newestName("{order}:1"), "latchkey_newest:{order}:1"},
		{"permits", permitsKey("order:1"), "{order:1}:timeout"},
		{"permits, hash tag", permitsKey("{order}:1"), "{order}:1:timeout"},
	} {
		if tt.got != tt.want {
			t.Errorf("%s is %q, want %q", tt.what, tt.got, tt.want)
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
		rate := rateKeys(tt.name, "u")
		for _, n := range []struct{ what, got, want string }{
			{"semaphoreChannel", semaphoreChannel(tt.name), tt.semaphore},
			{"permitsKey", permitsKey(tt.name), tt.permits},
			{"latchChannel", latchChannel(tt.name), tt.latch},
			{"value", rate[1], tt.value},
			{"ownValue", rate[3], tt.value + ":u"},
			{"ownPermits", rate[4], tt.ownPermits},
			{"permits", rate[2] + ":u", tt.ownPermits},
			{"receiptKey", receiptKey(tt.name, "u", 7), tt.receipt},
		} {
			if n.got != n.want {
				t.Errorf("%s of %q = %q, want %q", n.what, tt.name, n.got, n.want)
			}
		}
	}
}
