package redistest

import "testing"

func TestStartCluster(t *testing.T) {
	c := StartCluster(t, 1)
	c.Failover(t, 0)
}

func TestStartSentinels(t *testing.T) {
	s := StartSentinels(t)
	s.Failover(t)
}
