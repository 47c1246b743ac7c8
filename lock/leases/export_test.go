package leases

import "time"

// Sleep is as if the machine had been suspended for d: what was granted before has become older than the monotonic clock says.
func (l *Locker) Sleep(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range l.places {
		for _, s := range p.stays {
			s.asleep -= d
		}
	}
}
