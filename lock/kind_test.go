package lock_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/latchkey-go/latchkey/lock"
)

func TestKindText(t *testing.T) {
	names := []string{"exclusive", "fair", "read", "write", "fenced", "spin", "permit"}
	for k := lock.Exclusive; k <= lock.Permit; k++ {
		if k.String() != names[k] {
			t.Errorf("Kind(%d).String() = %q, want %q", int(k), k, names[k])
		}
		text, err := json.Marshal(k)
		if err != nil {
			t.Errorf("Marshal(%v) = %v", k, err)
		}
		back := lock.Kind(255)
		if err := json.Unmarshal(text, &back); err != nil || back != k {
			t.Errorf("Unmarshal(%s) = %v, %v, want %v", text, back, err, k)
		}
	}
}

func TestKindWithoutText(t *testing.T) {
	for k, want := range map[lock.Kind]string{255: "kind(255)", lock.Permit + 1: "kind(7)"} {
		if k.String() != want {
			t.Errorf("String() = %q, want %q", k, want)
		}
		if text, err := k.MarshalText(); err == nil {
			t.Errorf("%v.MarshalText() = %q, want an error", k, text)
		}
	}
	for _, text := range []string{"", "Fair", "fair ", "kind(7)", "mutex"} {
		k := lock.Spin
		if err := k.UnmarshalText([]byte(text)); err == nil || k != lock.Spin {
			t.Errorf("UnmarshalText(%q) = %v, kind %v, want an error and the old kind", text, err, k)
		}
	}
}

func TestFamilies(t *testing.T) {
	families := map[lock.Kind][]lock.Kind{
		lock.Exclusive: {lock.Exclusive, lock.Fair, lock.Fenced, lock.Spin},
		lock.Write:     {lock.Read, lock.Write},
		lock.Permit:    {lock.Permit},
	}
	n := 0
	for want, kinds := range families {
		for _, k := range kinds {
			if got := k.Family(); got != want {
				t.Errorf("%v.Family() = %v, want %v", k, got, want)
			}
			n++
		}
	}
	if n != int(lock.Permit)+1 {
		t.Errorf("%d kinds have a family here, want all", n)
	}
}

// Each row is a kind that is held, and each column one that is wanted, in the order of the constants.
func TestReenterTable(t *testing.T) {
	table := []string{
		lock.Exclusive: "++--++-",
		lock.Fair:      "++--++-",
		lock.Read:      "--+----",
		lock.Write:     "--++---",
		lock.Fenced:    "++--++-",
		lock.Spin:      "++--++-",
		lock.Permit:    "------+",
	}
	for held := lock.Exclusive; held <= lock.Permit; held++ {
		for wanted := lock.Exclusive; wanted <= lock.Permit; wanted++ {
			err := lock.Reenter(wanted, held)
			if table[held][wanted] == '+' {
				if err != nil {
					t.Errorf("Reenter(%v, %v) = %v, want nil", wanted, held, err)
				}
				continue
			}
			e, ok := errors.AsType[*lock.KindError](err)
			if !ok || *e != (lock.KindError{Held: held, Wanted: wanted}) || !errors.Is(err, lock.ErrUnsupported) {
				t.Errorf("Reenter(%v, %v) = %v, want a KindError with both", wanted, held, err)
			}
		}
	}
}

// One hold that can be re-entered is enough, wherever it is in the chain.
func TestReenterUnderSeveral(t *testing.T) {
	const read, write = lock.Read, lock.Write
	for _, tt := range []struct {
		wanted lock.Kind
		held   []lock.Kind
		ok     bool
	}{
		{write, nil, true},
		{write, []lock.Kind{read, write}, true},
		{write, []lock.Kind{write, read, read}, true},
		{write, []lock.Kind{read, read}, false},
		{read, []lock.Kind{write, read}, true},
	} {
		if err := lock.Reenter(tt.wanted, tt.held...); (err == nil) != tt.ok {
			t.Errorf("Reenter(%v, %v) = %v, want ok = %v", tt.wanted, tt.held, err, tt.ok)
		}
	}
}
