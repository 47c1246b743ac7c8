package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/latchkey-go/latchkey/lock"
)

// kindValue is a flag with the sort of a lock. Its zero value is a plain one.
type kindValue struct{ lock.Kind }

const plainKind = "plain" // what Redisson's users call it

func kindNames() []string {
	return []string{plainKind, "fair", "read", "write", "permit", "fenced", "spin"}
}

// Set implements pflag.Value.
func (k *kindValue) Set(text string) error {
	if text == plainKind {
		k.Kind = lock.Exclusive
		return nil
	}
	if k.UnmarshalText([]byte(text)) != nil {
		return fmt.Errorf("want one of %s", strings.Join(kindNames(), ", "))
	}
	return nil
}

// String implements pflag.Value.
func (k *kindValue) String() string {
	if k.Kind == lock.Exclusive {
		return plainKind
	}
	return k.Kind.String()
}

// Type implements pflag.Value.
func (k *kindValue) Type() string { return "kind" }

// waitValue is a flag with a time to wait, of which "forever" is negative.
type waitValue struct{ time.Duration }

const forever = "forever"

// Set implements pflag.Value.
func (w *waitValue) Set(text string) (err error) {
	if text == forever {
		w.Duration = -1
		return nil
	}
	if w.Duration, err = time.ParseDuration(text); err == nil && w.Duration < 0 {
		err = fmt.Errorf("want a time such as 10s, 0 or %s", forever)
	}
	return err
}

// String implements pflag.Value.
func (w *waitValue) String() string {
	if w.Duration < 0 {
		return forever
	}
	return w.Duration.String()
}

// Type implements pflag.Value.
func (w *waitValue) Type() string { return "duration" }
