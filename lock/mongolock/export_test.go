package mongolock

import "github.com/latchkey-go/latchkey/lock/leases"

// StoreOf lets tests repeat questions as a driver does.
func StoreOf(l *Locker) leases.Store { return l.store }
