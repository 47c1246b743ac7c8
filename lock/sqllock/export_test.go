package sqllock

import "github.com/latchkey-go/latchkey/lock/leases"

// Store lets tests ask the table what package leases would.
func (l *Locker) Store() leases.Store { return l.store }

// CodeOf is what this package reads in the error of a driver.
func CodeOf(err error) (text string, number int64) {
	c := codeOf(err)
	return c.text, c.number
}

// Linger is how long a Listener listens on after its last waiter.
const Linger = linger
